'use strict';

// node check_formulas.js PAGE: the formulas that the page shows for each matmul, read as they are written and put to
// work, give the engine's output and gradients. Prints how many products were checked, or what differs.

const {openPage} = require('./page_reader.js');

const tolerance = 1e-12;

const matrix = (numbers, [rows, cols]) =>
  Array.from({length: rows}, (_, i) => Array.from(numbers.slice(i * cols, (i + 1) * cols)));
const transposed = (m) => m[0].map((_, j) => m.map((row) => row[j]));

function times(a, b, formula) {
  if (a[0].length !== b.length) throw new Error(`${formula}: ${a[0].length} columns meet ${b.length} rows`);
  return a.map((row) => b[0].map((_, j) => row.reduce((sum, x, k) => sum + x * b[k][j], 0)));
}

/** "da = dy b^T" with its letters' matrices: the product. */
function evaluate(formula, named) {
  const factors = formula.replace(/^.*= /, '').replace(/,.*/, '').split(' ').map((word) => {
    const m = named[word.replace('^T', '')];
    return word.endsWith('^T') ? transposed(m) : m;
  });
  return factors.reduce((a, b) => times(a, b, formula)).flat();
}

function compare(formula, named, theirs) {
  const ours = evaluate(formula, named);
  if (ours.length !== theirs.length || ours.some((x, i) => Math.abs(x - theirs[i]) > tolerance))
    throw new Error(`${formula}: ${ours.join(' ')}, the engine has ${theirs.join(' ')}`);
}

async function main(file) {
  const {tessera, page} = await openPage(file), pass = page.passes[0];
  const steps = pass.steps.filter((step) => step.op === 'matmul');
  for (const step of steps) {
    const of = (i, numbers) => matrix(numbers, pass.values[i].shape), [a, b] = step.inputs;
    const named = {a: of(a, pass.value(a)), b: of(b, pass.value(b)), dy: of(step.output, pass.gradient(step.output))};
    const {forward, backward} = tessera.ops.formulas(step);
    compare(forward, named, pass.value(step.output));
    backward.split('; ').forEach((formula, k) => compare(formula, named, pass.gradient(step.inputs[k])));
  }
  console.log(`${steps.length} products`);
}

main(process.argv[2]).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
