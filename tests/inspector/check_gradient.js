'use strict';

// node check_gradient.js PAGE NAME NUMBER...: whether these are the gradient of a value of the page's first pass,
// to the last bit, and its stored proofs agree.

const {openPage} = require('./page_reader.js');

async function main([file, name, ...numbers]) {
  const {page} = await openPage(file), pass = page.passes[0], i = pass.index(name), proofs = pass.proofs[i] || [];
  const found = Array.from(pass.gradient(i));
  if (found.join(' ') !== numbers.map(Number).join(' ')) throw new Error(`the page has ${found.join(' ')}`);
  if (!proofs.length || !proofs.every((proof) => proof.ok)) throw new Error('no proof, or a wrong one');
  console.log(`${found.length} numbers of the gradient of ${name} are equal, and proved`);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
