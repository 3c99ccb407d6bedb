'use strict';

// node check_numbers.js PAGE...: what the page puts in for each cell of a lesson, computed as a reader would compute
// it, gives the number behind it, which is the record's own; and = stands only where no number is rounded. Prints how
// many were checked, or what differs.

const {openPage} = require('./page_reader.js');

let checked = 0;

/** What a text of the page gives: "0.5 · (3 − 2.9999)". */
function computed(text) {
  const words = text.replace(/−/g, '-').replace(/·/g, '*').replace(/∞/g, 'Infinity').replace(/exp\(/g, 'Math.exp(')
    .replace(/log (\S+)/g, 'Math.log($1)').replace(/- -/g, '- 0 -');
  return new Function(`return ${words};`)();
}

function check(name, told, record) {
  if (!told.substituted || / more/.test(told.substituted)) return;
  const [, text, sign, shown] = told.substituted.match(/^(?:(.*) ([=≈]) )?(.*)$/);
  const result = computed(shown), value = text ? computed(text) : result;
  const close = (a, b, to) => Object.is(a, b) || Math.abs(a - b) <= to * Math.abs(b) + 1e-15;
  const fault = (what) => { throw new Error(`${name} = ${told.substituted}: ${what}, the record has ${record}`); };
  if (!close(result, record, 1e-4)) fault('the result is another');
  if (!close(value, record, 2e-3)) fault(`what is put in gives ${value}`);
  if (sign === '=' && !close(value, record, 1e-6)) fault(`= stands for ${value}`);
  ++checked;
}

async function main(files) {
  for (const file of files) {
    const {tessera, page} = await openPage(file), pass = page.passes[0];
    for (const value of pass.values) {
      const gradient = pass.gradient(value.index);
      pass.value(value.index).forEach((x, cell) => {
        if (value.step >= 0) check(`${value.name} ${cell}`, tessera.explain.value(pass, value.index, cell), x);
        if (gradient)
          check(`dL/d(${value.name}) ${cell}`, tessera.explain.gradient(pass, value.index, cell), gradient[cell]);
      });
    }
  }
  console.log(`${checked} formulas`);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
