// The zoom "block": the ops of a module in their order, their edges, and each value and gradient as a small
// tile.
(function(tessera) {
'use strict';

const {modules, wiring, planes, place: places} = tessera;
const element = (...words) => tessera.draw.element(...words);
const rowHeight = 46, headingHeight = 28;

const heightOf = (row) => row.kind === 'heading' ? headingHeight : rowHeight;

function size(pass, i, gradient, place) {
  return tessera.flow.ready(pass, i, gradient, place.time) && pass.values[i].shape.length &&
          tessera.frame.decoded ?
      element('small', {class: 'rms', text: `RMS ${tessera.draw.short(modules.rms(pass, i, gradient), 3)}`}) :
      null;
}

/** A tile that leads to the tensor's numbers. */
function tensorButton(pass, i, gradient, place) {
  const {name} = pass.values[i], shown = place.value === i && place.gradient === gradient;
  const why = tessera.flow.whyNot(pass, i, gradient, place.time);
  return element(
      'button', {
        type: 'button',
        class: `tensor ${gradient ? 'gradient' : 'value'}${shown ? ' chosen' : ''}`,
        'aria-pressed': String(shown),
        'aria-label': `${gradient ? `gradient of ${name}` : name}${why ? `: ${why}` : ''}`,
        on: {click: () => tessera.frame.go({value: i, gradient})}
      },
      [planes.tile(pass, i, gradient, place), size(pass, i, gradient, place)]);
}

function parameters(pass, row, path) {
  return row.reads.filter((i) => pass.values[i].parameter)
      .map((i) => element('button', {
             type: 'button',
             class: 'parameter',
             text: modules.shortName(
                 pass.values[i].name, row.step === undefined ? path : pass.steps[row.step].module),
             title: `${pass.values[i].name} ${tessera.draw.shapeText(pass.values[i].shape)}`,
             on: {click: () => tessera.frame.go({value: i})}
           }));
}

const titles = {
  op: (pass, row) => ({name: pass.steps[row.step].op, go: {zoom: 'op', step: row.step}}),
  module: (pass, row) => ({name: row.node.label, go: {zoom: 'block', module: row.node.path}}),
  source: (pass, row) => (
      {name: pass.values[row.makes].step < 0 ? pass.values[row.makes].kind : 'from', go: {value: row.makes}}),
};

function heading(row) {
  return element(
      'div', {class: 'wiring-heading', style: {height: `${headingHeight}px`, paddingLeft: `${row.depth}em`}},
      [element('button', {
        type: 'button',
        class: 'plain',
        text: row.node.label,
        title: row.node.path,
        on: {click: () => tessera.frame.go({module: row.node.path})}
      })]);
}

function line(pass, row, place, path, current) {
  if (row.kind === 'heading') return heading(row);
  const {name, go} = titles[row.kind](pass, row), value = pass.values[row.makes];
  return element(
      'div', {
        class: `wiring-row ${row.kind}${current ? ' current' : ''}`,
        role: 'group',
        'aria-label': `${name}: ${value.name}`,
        style: {height: `${rowHeight}px`},
        data: {value: value.name}
      },
      [
        element(
            'div', {class: 'wiring-op', style: {paddingLeft: `${row.depth}em`}},
            [
              element(
                  'button',
                  {type: 'button', class: 'op-name', text: name, on: {click: () => tessera.frame.go(go)}}),
              ...parameters(pass, row, path)
            ]),
        element(
            'div', {class: 'wiring-made'},
            [
              element('span', {
                class: 'made-name',
                text: modules.shortName(value.name, path),
                title: [value.name, ...value.aliases].join(' = ')
              }),
              element('small', {text: tessera.draw.shapeText(value.shape)})
            ]),
        tensorButton(pass, row.makes, false, place), tensorButton(pass, row.makes, true, place)
      ]);
}

const known = new Map();

function wired(place, pass) {
  const key = `${place.pass} ${place.module}`;
  if (!known.has(key)) known.set(key, wiring.of(pass, place.module));
  return known.get(key);
}

function render(container, place, pass) {
  const w = wired(place, pass), now = places.stepAt(pass, place.time);
  const row = wiring.rowOfStep(pass, w, now.step), heights = w.rows.map(heightOf);
  const before = container.querySelector('.wiring'), scrolled = document.getElementById('view').scrollTop;
  const sameModule = before && before.dataset.path === place.module;
  container.replaceChildren(element('div', {class: 'wiring', data: {path: place.module}}, [
    element(
        'div', {class: 'wiring-head'},
        [
          element('span', {text: 'op'}), element('span', {text: 'makes'}),
          element('span', {class: 'value', text: 'value'}),
          element('span', {class: 'gradient', text: 'gradient'})
        ]),
    element(
        'div', {class: 'wiring-body'},
        [
          wiring.drawing(w, heights, row < 0 ? null : {row, backward: now.backward}),
          element(
              'div', {class: 'wiring-rows'},
              w.rows.map((each, r) => line(pass, each, place, place.module, r === row)))
        ])
  ]));
  document.getElementById('view').scrollTop = sameModule ? scrolled : 0;
  const current = container.querySelector('.wiring-row.current');
  if (current) current.scrollIntoView({block: 'nearest'});
}

tessera.zoom.own.block = {
  title: () => 'ops',
  render
};
tessera.blockView = {tensorButton};
})(globalThis.tessera = globalThis.tessera || {});
