'use strict';

// node check_ops.js PAGE...: every step of each page's first pass, computed again by the page's own ops: outputs and
// gradients must be the engine's, the terms of drawn cells must add up to them, the difference quotients of the ops
// must agree, and every gradient that is 0 must have a reason. Prints for each page how many were checked, or what
// differs.

const {openPage} = require('./page_reader.js');

const tolerance = 1e-9;
const faults = [];
let counts;

const largest = (numbers) => numbers.reduce((most, x) => Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most, 0);

/** A generator of numbers in [0, 1), the same every time. */
function draws(seed) {
  let state = seed;
  return () => (state = (state * 1664525 + 1013904223) % 4294967296) / 4294967296;
}

// What is 0 but for rounding is compared on the scale of what cancelled, a little below the largest gradient.
let least = 0;

function compare(name, ours, theirs) {
  const scale = Math.max(largest(theirs), least) || 1;
  for (let i = 0; i < theirs.length; ++i) {
    if (Object.is(ours[i], theirs[i]) || Math.abs(ours[i] - theirs[i]) <= tolerance * scale) continue;
    faults.push(`${name}: cell ${i} is ${ours[i]}, the engine has ${theirs[i]}`);
    return;
  }
  if (ours.length !== theirs.length) faults.push(`${name}: ${ours.length} numbers, the engine has ${theirs.length}`);
}

function checkSteps(tessera, pass) {
  for (const step of pass.steps) {
    ++counts.steps;
    compare(`${pass.values[step.output].name} (${step.op})`, tessera.ops.forward(pass, step), pass.value(step.output));
  }
}

function checkGradients(tessera, pass) {
  least = 1e-6 * Math.max(...pass.values.map((value) => largest(pass.gradient(value.index) || [])));
  for (const value of pass.values) {
    if (!value.hasGradient || value.readers.length === 0) continue;
    const sum = new Float64Array(pass.gradient(value.index).length);
    for (const {step, input} of value.readers) {
      if (!pass.gradient(pass.steps[step].output)) continue;
      tessera.ops.backward(pass, pass.steps[step], input).forEach((x, i) => { sum[i] += x; });
    }
    ++counts.gradients;
    const by = [...new Set(value.readers.map(({step}) => pass.steps[step].op))].join(', ');
    compare(`gradient of ${value.name} (${by})`, sum, pass.gradient(value.index));
  }
}

function checkCell(tessera, pass, value, cell) {
  const gradient = pass.gradient(value.index), scale = Math.max(largest(gradient), least);
  const told = tessera.explain.gradient(pass, value.index, cell);
  ++counts.cells;
  if (!(Math.abs(told.total - gradient[cell]) <= tolerance * scale))
    faults.push(`terms of the gradient of ${value.name} [${cell}]: ${told.total}, not ${gradient[cell]}`);
  const made = tessera.explain.value(pass, value.index, cell);
  const sum = made.terms.reduce((total, term) => total + term.value, 0), is = pass.value(value.index)[cell];
  const product = made.terms.every((term) => Math.abs(term.factors.reduce((p, f) => p * f.value, 1) - term.value)
    <= 1e-9 * Math.max(1, Math.abs(term.value)));
  if (made.terms.length > 0 && Number.isFinite(is)) {
    if (!(Math.abs(sum - is) <= tolerance * (largest(pass.value(value.index)) || 1)))
      faults.push(`terms of ${value.name} [${cell}]: ${sum}, not ${is}`);
    if (!product) faults.push(`a term of ${value.name} [${cell}] is not the product of its factors`);
  }
  const proof = tessera.explain.proveOp(pass, value.index, cell);
  ++counts.proofs;
  if (!proof.ok && Math.abs(proof.analytic - proof.difference) > 1e-6 * scale)
    faults.push(`proof of ${value.name} [${cell}] (${value.readers.map((r) => pass.steps[r.step].op)}): ` +
      `${proof.analytic}, difference ${proof.difference}`);
}

function checkZeros(tessera, pass, value) {
  const gradient = pass.gradient(value.index);
  if (gradient === null) {
    ++counts.zeros;
    if (!tessera.zeros.ofTensor(pass, value.index)) faults.push(`no reason for no gradient of ${value.name}`);
    return;
  }
  for (let cell = 0, seen = 0; cell < gradient.length && seen < 20; ++cell) {
    if (gradient[cell] !== 0) continue;
    ++counts.zeros;
    ++seen;
    const reason = tessera.zeros.reason(pass, value.index, cell);
    if (!reason) {
      faults.push(`no reason for the 0 of ${value.name} [${cell}]: ${reason}`);
      return;
    }
  }
}

async function checkPage(file) {
  counts = {steps: 0, gradients: 0, cells: 0, proofs: 0, zeros: 0};
  const {tessera, page} = await openPage(file), pass = page.passes[0], draw = draws(7);
  checkSteps(tessera, pass);
  checkGradients(tessera, pass);
  for (const value of pass.values) {
    if (value.kind === 'constant') continue;
    checkZeros(tessera, pass, value);
    if (!value.hasGradient || value.readers.length === 0) continue;
    for (let n = 0; n < 2; ++n)
      checkCell(tessera, pass, value, Math.floor(draw() * pass.gradient(value.index).length));
  }
  if (faults.length > 0) throw new Error(`${file}: ` + faults.slice(0, 20).join('\n') + `\n${faults.length} faults`);
  console.log(`checked ${counts.steps} steps, ${counts.gradients} gradients, ${counts.cells} cells, ` +
    `${counts.proofs} proofs, ${counts.zeros} zeros`);
}

async function main(files) {
  for (const file of files) await checkPage(file);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
