// "Is it true?": the analytic gradient of a number beside a central difference, and of what.
(function(tessera) {
'use strict';

const element = (...words) => tessera.draw.element(...words);

const whole =
    'Proof by the whole model: this number was moved up and down, all the rest computed again in double.';
const alone =
    'Proof of the op alone: this number was moved up and down, and the steps that read it were computed again in ' +
    'double, here in the page; what comes behind them is taken from the stored gradient.';

function verdict(proof) {
  return element('p', {class: `verdict ${proof.ok ? 'right' : 'wrong'}`, role: 'status'}, [
    element('span', {class: 'verdict-sign', 'aria-hidden': 'true', text: proof.ok ? '\u2713' : '\u2717'}),
    element('span', {text: proof.ok ? 'right: both agree' : 'wrong: they do not agree'})
  ]);
}

function table(proof) {
  const rows = [
    ['analytic gradient', proof.analytic], ['central difference', proof.difference],
    ['relative error', proof.error], ...(proof.step ? [['step of the difference', proof.step]] : [])
  ];
  return element(
      'table', {class: 'proof-table'},
      [element(
          'tbody', {},
          rows.map(([name, x]) => element('tr', {}, [
                     element('th', {scope: 'row', text: name}), element('td', {
                       text: x === proof.error ? tessera.draw.short(x, 3) : tessera.draw.exact(x),
                       title: tessera.texts.full(x)
                     })
                   ])))]);
}

const told = (proof, kind, words) => element('div', {class: 'proof', data: {proof: kind}}, [
  element('p', {class: 'note', text: words}), verdict(proof), table(proof),
  proof.note ? element('p', {class: 'note', text: proof.note}) : null
]);

const listOf = (pass, i) => (pass.proofs || {})[i] || [];

function storedElsewhere(pass, p) {
  const cells = listOf(pass, p.value).filter((proof) => proof.cell !== p.cell);
  if (!cells.length) return [];
  return [element('p', {class: 'note'}, [
    'Stored whole-model proofs of this tensor: ',
    ...cells.flatMap(
        (proof) =>
            [element('button', {
               type: 'button',
               class: `plain ${proof.ok ? 'right' : 'wrong'}`,
               text: `${proof.ok ? '\u2713' : '\u2717'} [${
                   tessera.place.indicesOf(proof.cell, pass.values[p.value].shape).join(', ')}]`,
               on: {click: () => tessera.frame.go({gradient: true, cell: proof.cell})}
             }),
             ' '])
  ])];
}

function say(box, error) {
  box.replaceChildren(
      element('p', {class: 'verdict', role: 'status', text: `No proof: ${error.message || error}`}));
}

function proveHere(box, pass, p) {
  try {
    const proof = tessera.explain.proveOp(pass, p.value, p.cell);
    if (!proof) throw new Error('no step that reads this number passes a gradient on');
    box.replaceChildren(told(proof, 'op', alone));
  } catch (error) {
    say(box, error);
  }
}

async function proveThere(box, p) {
  box.replaceChildren(
      element('p', {class: 'note', role: 'status', text: 'The engine moves this number\u2026'}));
  try {
    box.replaceChildren(told(await tessera.serve.prove(p), 'whole', `${whole} The engine did so just now.`));
  } catch (error) {
    say(box, error);
  }
}

/** The proof panel of a gradient's cell. */
function sections(pass, p) {
  const value = pass.values[p.value];
  if (!p.gradient || !value.hasGradient) return [];
  const stored = listOf(pass, p.value).find((proof) => proof.cell === p.cell),
        box = element('div', {id: 'proof-result'});
  if (stored) box.replaceChildren(told(stored, 'whole', `${whole} Stored with this page.`));
  const buttons = [];
  if (tessera.explain && tessera.explain.proveOp && value.readers.length)
    buttons.push(element('button', {
      type: 'button',
      id: 'prove-op',
      text: 'prove the op alone',
      title: 'here in the page ( p )',
      on: {click: () => proveHere(box, pass, p)}
    }));
  if (tessera.page.served && tessera.serve && tessera.serve.prove)
    buttons.push(element('button', {
      type: 'button',
      id: 'prove-whole',
      text: 'ask the engine for the whole model',
      on: {click: () => proveThere(box, p)}
    }));
  return [element('section', {class: 'proofs'}, [
    element('h3', {text: 'Is it true?'}), box, element('div', {class: 'proof-buttons'}, buttons),
    ...storedElsewhere(pass, p)
  ])];
}

/** The key "p": the gradient of the chosen number, proved. */
function ask() {
  const {frame} = tessera;
  if (frame.place.cell < 0) return;
  if (!frame.place.gradient) frame.go({gradient: true, cell: frame.place.cell});
  const button = document.getElementById('prove-op');
  if (button) button.click();
}

tessera.proof = {
  sections,
  ask
};
})(globalThis.tessera = globalThis.tessera || {});
