'use strict';

// Checks the search of a built site: node apps/docs/check_search.js build-docs/site. For each question, the address
// that must be among the first answers.

const fs = require('fs');
const path = require('path');

const folder = process.argv[2];
const {find, snippet} = require(path.resolve(folder, 'search.js'));
const text = fs.readFileSync(path.join(folder, 'search-index.js'), 'utf8');
const index = new Function(text + '; return searchIndex;')();

const questions = [
  ['optimizer.lr', 'config.html#key-optimizer.lr', 1],
  ['learning rate', 'config.html#key-optimizer.lr', 10],
  ['resume', 'resuming.html', 3],
  ['own pictures', 'own-pictures.html', 1],
  ['temperature', 'config.html#key-model.attention.temperature', 5],
  ['tessera ablate', 'commands.html#tessera-ablate', 3],
  ['gradcheck', 'commands.html#tessera-gradcheck', 5],
  ['one run on several machines', 'machines.html#one-run-on-several-machines', 1],
  ['read_checkpoint', 'api/', 2],
  ['Tape::backward', 'api/', 1],
];
let wrong = 0;
for (const [typed, address, among] of questions) {
  const found = find(index, typed, among).map(entry => entry[2]);
  if (found.some(each => each.startsWith(address))) continue;
  console.log(`search: '${typed}' finds ${found.join(', ') || 'nothing'}, wanted ${address} among the first ${among}`);
  ++wrong;
}
if (find(index, 'no such words here zzz', 5).length) {
  console.log('search: finds what is not there');
  ++wrong;
}
const marked = snippet('The learning rate rises', ['rate'], 100).filter(part => part[1]).map(part => part[0]);
if (marked.join() !== 'rate') {
  console.log(`search: marks '${marked}' for 'rate'`);
  ++wrong;
}
const missing = index.filter(entry => !fs.existsSync(path.join(folder, entry[2].split('#')[0])));
for (const entry of missing) console.log(`search: no ${entry[2]}`);
const asked = questions.length + 2;
console.log(`docs: the search knows ${index.length} sections, keys and names; ${wrong} of ${asked} answers wrong`);
process.exit(wrong || missing.length ? 1 : 0);
