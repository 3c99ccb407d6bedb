// The zoom "op": its formulas forward and backward, what it reads and makes, and the gradients, as matrices.
(function(tessera) {
'use strict';

const {modules, planes, flow, place: places} = tessera;
const element = (...words) => tessera.draw.element(...words);

/** "y = x W^T + b" as the catalog has it, marked while it runs. */
function formula(way, text, active) {
  return element('div', {class: `formula ${way}${active ? ' active' : ''}`}, [
    element('span', {class: 'formula-way', text: way}),
    element('code', {text: text || 'no formula in the catalog'})
  ]);
}

function attributes(step) {
  const words = Object.entries(step.attributes || {}).map(([name, x]) => `${name} = ${attributeText(x)}`);
  return words.length ? element('p', {class: 'note attributes', text: `asked with ${words.join(', ')}`}) :
                        null;
}

function attributeText(x) {
  if (typeof x === 'number') return tessera.draw.exact(x);
  if (Array.isArray(x)) return `[${x.join(', ')}]`;
  return x && x.shape ? `a table ${tessera.draw.shapeText(x.shape)}` : String(x);
}

const symbol = (pass, i, gradient, path) => {
  const name = modules.shortName(pass.values[i].name, path);
  return gradient ? `dL/d(${name})` : name;
};

function cellSize(plane) {
  const ratio = globalThis.devicePixelRatio || 1;
  return Math.max(1 / ratio, Math.min(56, Math.floor(Math.min(250 / plane.cols, 200 / plane.rows))));
}

let kept = new Map(), before = new Map();  // drawn figures by what they show: a step keeps those that stay

function heatmap(pass, i, gradient, place) {
  const numbers = planes.read(pass, i, gradient), plane = planes.at(pass, i, place);
  const {dtype, shape} = pass.values[i], {draw} = tessera;
  const name = symbol(pass, i, gradient, pass.steps[place.step].module);
  const scale = draw.scale({limit: planes.limitOf(pass, i, gradient), log: plane.rows * plane.cols > 36});
  const indices = (r, c) => [...plane.lead, ...[r, c].slice(2 - Math.min(2, shape.length))];
  const map = draw.heatmap({
    ...{rows: plane.rows, cols: plane.cols, values: numbers, scale, dtype, name, label: name, markCell: true},
    at: (r, c) => plane.offset + r * plane.cols + c,
    cell: cellSize(plane),
    cellName: (r, c) => `[${indices(r, c).join(', ')}]`,
    pick: (cell) => tessera.frame.go({value: i, gradient, cell})
  });
  const legend = draw.legend(scale, draw.countSpecial(numbers));
  const element = draw.element('div', {}, [draw.element('div', {class: 'matrix-scroll'}, [map.element]), legend]);
  return {element, map, offset: plane.offset, i, gradient};
}

/** The matrix of a tensor with the chosen cell marked; drawn anew only where it shows something else. */
function matrix(pass, i, gradient, place) {
  if (!planes.read(pass, i, gradient)) return element('p', {class: 'note', text: 'reading the numbers\u2026'});
  const {offset} = planes.at(pass, i, place);
  const key = [place.pass, place.step, i, gradient, offset, globalThis.devicePixelRatio].join(' ');
  const figure = kept.get(key) || before.get(key) || heatmap(pass, i, gradient, place);
  kept.set(key, figure);
  const chosen = place.value === i && place.gradient === gradient && place.cell >= 0;
  figure.map.mark(chosen ? place.cell - offset : -1);
  return figure.element;
}

function missing(value, gradient, why) {
  const kind = value.hasGradient || !gradient ? 'not-yet' : 'none';
  return element('div', {class: `missing ${kind}`, role: 'note', text: why});
}

// The tensor's name, its shape, and which of its matrices is shown.
function caption(pass, i, gradient, place, role, shape) {
  const value = pass.values[i], lead = planes.leadOf(pass, i, place);
  const where = lead.some((_, axis) => value.shape[axis] > 1) ? ` at [${lead.join(', ')}, :, :]` : '';
  const viewed = shape && shape.join() !== value.shape.join();
  const asRead = viewed ? `, read as ${tessera.draw.shapeText(shape)}` : '';
  const name = element('button', {
    type: 'button',
    class: 'plain matrix-name',
    text: symbol(pass, i, gradient, pass.steps[place.step].module),
    title: value.name,
    on: {click: () => tessera.frame.go({value: i, gradient})}
  });
  const about = element('small', {text: `${tessera.draw.shapeText(value.shape)}${where}${asRead}`});
  return element('figcaption', {}, [element('span', {class: 'role', text: role}), name, about]);
}

/** A tensor with its name, shape and matrix; hatched while there are no numbers, with the reason. */
function figure(pass, i, gradient, place, role, shape) {
  const value = pass.values[i], why = flow.whyNot(pass, i, gradient, place.time);
  const numbers = why ? missing(value, gradient, why) : matrix(pass, i, gradient, place);
  const data = {value: value.name, gradient: String(gradient)};
  return element('figure', {class: `matrix ${gradient ? 'gradient' : 'value'}`, data},
    [caption(pass, i, gradient, place, role, shape), numbers]);
}

const inputs = (step) => step.inputs.map((i, k) => ({i, shape: step.shapes[k]})).filter(({i}) => i >= 0);

function forward(pass, step, place) {
  return [
    ...inputs(step).map(({i, shape}) => figure(pass, i, false, place, 'reads', shape)),
    element('span', {class: 'flow-arrow', 'aria-hidden': 'true', text: '\u2192'}),
    figure(pass, step.output, false, place, 'makes')
  ];
}

function backward(pass, step, place) {
  const wanted = inputs(step).filter(({i}) => pass.values[i].kind !== 'constant');
  return [
    ...wanted.map(({i}) => figure(pass, i, true, place, role(pass, step, i))),
    element('span', {class: 'flow-arrow', 'aria-hidden': 'true', text: '\u2190'}),
    figure(pass, step.output, true, place, 'takes')
  ];
}

// A gradient that several steps add to is not this step's alone.
function role(pass, step, i) {
  const givers = flow.givers(pass, i);
  return givers.length > 1 && givers.includes(step.index) ?
      `gives a part of (${givers.length} steps add up)` :
      'gives';
}

function half(way, text, active, figures) {
  return element(
      'section', {class: `half-op ${way}`},
      [formula(way, text, active), element('div', {class: 'figures'}, figures)]);
}

// What is drawn, apart from a chosen cell elsewhere.
const keyOf = (place) => [place.pass, place.step, place.time, place.value, place.gradient, place.cell,
                          place.head, tessera.frame.decoded]
                             .join(' ');

function render(container, place, pass) {
  if (container.dataset.key === keyOf(place)) return;
  container.dataset.key = keyOf(place);
  const step = pass.steps[place.step], now = places.stepAt(pass, place.time);
  const words = tessera.ops.formulas(step), running = now.step === step.index;
  const view = document.getElementById('view'), scrolled = view.scrollTop;
  [before, kept] = [kept, new Map()];
  const asked = attributes(step);
  container.replaceChildren(...(asked ? [asked] : []),
    half('forward', words.forward, running && !now.backward, forward(pass, step, place)),
    half('backward', words.backward, running && now.backward, backward(pass, step, place)));
  view.scrollTop = container.dataset.step === String(place.step) ? scrolled : 0;
  container.dataset.step = place.step;
  if (running && now.backward) container.querySelector('.half-op.backward').scrollIntoView({block: 'nearest'});
}

tessera.zoom.own.op = {
  title: (place, pass) => pass.steps[place.step].op,
  render
};
tessera.opView = {symbol};
})(globalThis.tessera = globalThis.tessera || {});
