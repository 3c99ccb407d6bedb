// The numbers of the chosen tensor at the bottom: its value beside its gradient.
(function(tessera) {
'use strict';

const {planes, flow, texts} = tessera;
const element = (...words) => tessera.draw.element(...words);
const widest = {
  f32: 15,
  bf16: 13,
  f64: 24,
  i64: 9,
  u8: 5
};  // characters of a number
const panes = {};
let head = null, key = '';

function pane(gradient) {
  const way = gradient ? 'gradient' : 'value';
  const title = element('h3', {class: way}), note = element('span', {class: 'pane-note'});
  const missing = element('p', {class: 'missing', role: 'note', hidden: true});
  const grid = tessera.numberGrid({
    open: (r, c) => {
      const {place} = tessera.frame, plane = planes.at(tessera.frame.pass(), place.value, place);
      tessera.frame.go({gradient, cell: plane.offset + r * plane.cols + c});
    },
    scrolled: (from) => {
      const other = panes[gradient ? 'value' : 'gradient'].grid.element;
      if (other.hidden || (other.scrollTop === from.scrollTop && other.scrollLeft === from.scrollLeft))
        return;
      other.scrollTop = from.scrollTop;
      other.scrollLeft = from.scrollLeft;
    },
  });
  return {
    way,
    gradient,
    title,
    note,
    missing,
    grid,
    element: element(
        'div', {class: `pane ${way}`},
        [element('div', {class: 'pane-head'}, [title, note]), missing, grid.element])
  };
}

function build() {
  head = element('div', {class: 'numbers-head'});
  panes.value = pane(false);
  panes.gradient = pane(true);
  document.getElementById('numbers').replaceChildren(
      head, element('div', {class: 'panes'}, [panes.value.element, panes.gradient.element]));
}

function choosers(pass, i, place) {
  const {shape} = pass.values[i], lead = planes.leadOf(pass, i, place);
  return lead
      .map(
          (index, axis) => shape[axis] < 2 ?
              null :
              tessera.draw.select(
                  planes.axisName(pass, i, axis), Array.from({length: shape[axis]}, (_, k) => [k, String(k)]),
                  index, (chosen) => choose(pass, i, lead, axis, Number(chosen))))
      .filter(Boolean);
}

function choose(pass, i, lead, axis, index) {
  const {frame} = tessera, next = lead.slice();
  next[axis] = index;
  planes.choose(pass, i, next);
  const head = axis === planes.headAxis(pass.values[i].shape) ? index : frame.place.head;
  key = '';
  frame.show({...frame.place, cell: -1});
  frame.go({head, cell: -1});
}

function rowChooser(pass, i, place) {
  const {rows} = planes.sizesOf(pass.values[i].shape);
  if (rows < 12) return [];
  const input = element('input', {
    type: 'number',
    min: '0',
    max: String(rows - 1),
    placeholder: `0\u2013${rows - 1}`,
    'aria-label': 'go to row',
    on: {
      change: () => {
        const row = Number(input.value), plane = planes.at(pass, i, place);
        if (row >= 0 && row < rows) tessera.frame.go({cell: plane.offset + row * plane.cols});
      }
    }
  });
  return [element('label', {class: 'draw-choice'}, [element('span', {text: 'row'}), input])];
}

function updateHead(place, pass) {
  const value = pass.values[place.value], {draw} = tessera;
  const made = tessera.modules.stepOf(pass, place.value);
  head.replaceChildren(
      element('button', {
        type: 'button',
        class: 'plain tensor-name',
        text: value.name,
        title: 'to the op that makes it',
        on: {
          click: () => {
            if (made >= 0) tessera.frame.go({zoom: 'op', step: made, value: place.value});
          }
        }
      }),
      ...value.aliases.map((alias) => element('small', {class: 'alias', text: `= ${alias}`})),
      element('small', {
        text: `${draw.shapeText(value.shape)} ${value.dtype}${
            value.parameter    ? ', a parameter' :
                value.step < 0 ? `, a ${value.kind}` :
                                 ''}`
      }),
      ...choosers(pass, place.value, place), ...rowChooser(pass, place.value, place),
      ...(tessera.frame.decoded ? [tessera.exports.menu(pass, place.value)] : []));
}

function columnWidth(all, dtype) {
  let most = widest[dtype] || 15;
  if (all.length <= 400) most = Math.max(5, ...Array.from(all, (x) => tessera.draw.exact(x, dtype).length));
  return Math.ceil(most * 7.3) + 12;
}

function about(pass, i, gradient, all) {
  let zeros = 0;
  for (let k = 0; k < all.length; ++k)
    if (all[k] === 0) ++zeros;
  const rms = tessera.modules.rms(pass, i, gradient);
  return (all.length > 1 && rms !== null ? `RMS ${tessera.draw.short(rms)}` : '') +
      (zeros ? `  ${zeros} of ${all.length} are 0` : '');
}

function fill(each, place, pass) {
  const i = place.value, {gradient} = each, value = pass.values[i], {draw} = tessera;
  each.title.textContent = gradient ? `dL/d(${value.name})` : value.name;
  each.element.classList.toggle('chosen', place.gradient === gradient);
  const why = flow.whyNot(pass, i, gradient, place.time) ||
      (tessera.frame.decoded ? '' : 'reading the numbers\u2026');
  each.missing.hidden = !why;
  each.missing.className = `missing ${gradient && !value.hasGradient ? 'none' : 'not-yet'}`;
  each.missing.textContent = why;
  each.grid.element.hidden = Boolean(why);
  each.note.textContent = '';
  if (why) return;
  const all = planes.read(pass, i, gradient), plane = planes.at(pass, i, place),
        at = (r, c) => plane.offset + r * plane.cols + c;
  const scale = draw.scale({limit: planes.limitOf(pass, i, gradient), log: true}), theme = draw.theme();
  const inside = place.cell - plane.offset;
  each.note.textContent = about(pass, i, gradient, all);
  each.grid.set({
    rows: plane.rows,
    cols: plane.cols,
    columnWidth: columnWidth(all, value.dtype),
    label: each.title.textContent,
    text: (r, c) => draw.exact(all[at(r, c)], value.dtype),
    full: (r, c) => texts.full(all[at(r, c)]),
    tint: (r, c) =>
        all[at(r, c)] === 0 ? '' : `color-mix(in srgb, ${scale.css(all[at(r, c)], theme)} 30%, transparent)`,
    picked: place.cell < 0 ? null : [Math.floor(inside / plane.cols), inside % plane.cols]
  });
}

function update(place, pass) {
  if (!head) build();
  const now = [
    place.pass, place.value, place.gradient, place.cell, place.head, place.time, tessera.frame.decoded,
    tessera.draw.theme()
  ].join(' ');
  if (now === key) return;
  key = now;
  document.getElementById('numbers').hidden = place.value < 0;
  if (place.value < 0) return;
  const {rows} = planes.sizesOf(pass.values[place.value].shape);
  document.getElementById('numbers').style.setProperty('--rows', rows);
  updateHead(place, pass);
  fill(panes.value, place, pass);
  fill(panes.gradient, place, pass);
}

function focus() {
  const {place} = tessera.frame, wanted = panes[place.gradient ? 'gradient' : 'value'].grid.element;
  (wanted.hidden ? panes.value.grid.element : wanted).focus();
}

tessera.numbersPanel = {
  update,
  focus
};
})(globalThis.tessera = globalThis.tessera || {});
