'use strict';

// node compare_with_export.js PAGE FOLDER [PAGE FOLDER]...: every value and gradient of a page's first pass against
// those that tessera inspect --export wrote, bit by bit. Prints for each "N tensors, M numbers are equal", or what
// differs.

const fs = require('fs');
const path = require('path');
const {openPage} = require('./page_reader.js');

/** name -> the tensor's bytes. */
function readSafetensors(file) {
  const bytes = fs.readFileSync(file), length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString('utf8', 8, 8 + length));
  const tensors = new Map();
  delete header.__metadata__;
  for (const [name, {data_offsets: [from, to], dtype}] of Object.entries(header))
    tensors.set(name, {dtype, bytes: bytes.subarray(8 + length + from, 8 + length + to)});
  return tensors;
}

/** The bytes of the page's numbers in the file's type. */
function bytesOf(numbers, dtype) {
  if (dtype === 'I64') return Buffer.from(BigInt64Array.from(numbers, (x) => BigInt(x)).buffer);
  if (dtype === 'U8') return Buffer.from(Uint8Array.from(numbers));
  return Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

async function comparePage(pageFile, folder) {
  const {page} = await openPage(pageFile), pass = page.passes[0];
  let tensors = 0, numbers = 0, different = 0;
  const compare = (file, has, numbersOf) => {
    const expected = readSafetensors(path.join(folder, file));
    for (const value of pass.values) {
      if (!has(value) && !expected.has(value.name)) continue;
      const ours = numbersOf(value.index), {dtype, bytes} = expected.get(value.name);
      ++tensors;
      numbers += ours.length;
      if (bytes.equals(bytesOf(ours, dtype))) continue;
      ++different;
      console.log(`${file}: ${value.name} differs`);
    }
  };
  compare('values.safetensors', () => true, pass.value);
  compare('gradients.safetensors', (value) => value.hasGradient, pass.gradient);
  if (different > 0 || tensors === 0) throw new Error(`${pageFile}: ${different} of ${tensors} tensors differ`);
  console.log(`${tensors} tensors, ${numbers} numbers are equal`);
}

async function main(words) {
  for (let i = 0; i < words.length; i += 2) await comparePage(words[i], words[i + 1]);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
