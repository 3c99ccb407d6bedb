// Where the reader is: the place, its text in the URL's fragment, and the registry of what can be shown
// there.
(function(tessera) {
'use strict';

// A place:
//   pass      number of the pass in tessera.page.passes
//   zoom      'model', 'block' or 'op'
//   module    path of the module that the zoom 'block' shows, '' for the whole model
//   step      the op that the zoom 'op' shows
//   time      0 to S - 1: that step forward; S to 2 S - 1: backward, from the last step to the first; 2 S:
//   all done value     the tensor whose numbers are shown, -1 for none; gradient: its gradient is meant head
//   index of the head, -1 where none is chosen cell      the chosen number's place in the tensor, row by row;
//   -1 for none view      id of the view shown, '' for the zoom's own
const start = {
  pass: 0,
  zoom: 'model',
  module: '',
  step: 0,
  time: 0,
  value: -1,
  gradient: false,
  head: -1,
  cell: -1,
  view: ''
};

const zooms = ['model', 'block', 'op'];
const size = (shape) => shape.reduce((product, n) => product * n, 1);
const within = (x, count, otherwise) => Number.isInteger(x) && x >= 0 && x < count ? x : otherwise;

/** The indices of a cell in a tensor of that shape. */
function indicesOf(cell, shape) {
  const indices = shape.map(() => 0);
  for (let axis = shape.length - 1, rest = cell; axis >= 0; --axis) {
    indices[axis] = rest % shape[axis];
    rest = Math.floor(rest / shape[axis]);
  }
  return indices;
}

/** The cell at these indices, or -1 where the tensor has none. */
function cellAt(indices, shape) {
  if (indices.length !== shape.length) return -1;
  let cell = 0;
  for (let axis = 0; axis < shape.length; ++axis) {
    if (within(indices[axis], shape[axis], -1) < 0) return -1;
    cell = cell * shape[axis] + indices[axis];
  }
  return cell;
}

/** The step under way at a time and which way it runs; when all is done there is none. */
function stepAt(pass, time) {
  const steps = pass.steps.length;
  if (time >= 2 * steps) return {step: -1, backward: true, done: true};
  return time < steps ? {step: time, backward: false, done: false} :
                        {step: 2 * steps - 1 - time, backward: true, done: false};
}

const timeOf = (pass, step, backward) => backward ? 2 * pass.steps.length - 1 - step : step;

/** A place of which every part exists: what does not becomes what the page begins with. */
function checked(place, passes) {
  const p = {...start, ...place};
  p.pass = within(p.pass, passes.length, 0);
  const pass = passes[p.pass], steps = pass.steps.length;
  if (!zooms.includes(p.zoom)) p.zoom = 'model';
  p.step = within(p.step, steps, 0);
  p.time = within(p.time, 2 * steps + 1, 2 * steps);
  p.value = within(p.value, pass.values.length, -1);
  if (p.zoom === 'op' && p.module === '') p.module = pass.steps[p.step].module;
  const shape = p.value < 0 ? [] : pass.values[p.value].shape;
  p.cell = p.value < 0 ? -1 : within(p.cell, size(shape), -1);
  p.gradient = p.value >= 0 && Boolean(p.gradient);
  p.head = Number.isInteger(p.head) && p.head >= 0 ? p.head : -1;
  if (!pass.steps.some((step) => isBelow(step.module, p.module))) p.module = '';
  return p;
}

const isBelow = (module, path) => path === '' || module === path || module.startsWith(`${path}.`);

/** The fragment of a place: names and indices, so that it holds for another page of the same model. */
function fragmentOf(place, passes) {
  const pass = passes[place.pass], words = new URLSearchParams();
  if (place.pass > 0) words.set('pass', place.pass);
  words.set('zoom', place.zoom);
  if (place.module) words.set('module', place.module);
  if (place.zoom === 'op') words.set('op', pass.values[pass.steps[place.step].output].name);
  const now = stepAt(pass, place.time);
  if (!now.done) words.set('time', `${now.backward ? 'backward' : 'forward'}-${now.step}`);
  if (place.value >= 0) words.set(place.gradient ? 'gradient' : 'value', pass.values[place.value].name);
  if (place.head >= 0) words.set('head', place.head);
  if (place.cell >= 0) words.set('cell', indicesOf(place.cell, pass.values[place.value].shape).join(','));
  if (place.view) words.set('view', place.view);
  return `#${words}`;
}

const number = (text) => text !== null && /^\d+$/.test(text) ? Number(text) : -1;

function timeOfText(text, pass) {
  const found = /^(forward|backward)-(\d+)$/.exec(text || '');
  return found && Number(found[2]) < pass.steps.length ?
      timeOf(pass, Number(found[2]), found[1] === 'backward') :
      2 * pass.steps.length;
}

/** The place that a fragment means, or null for an empty one. */
function placeOf(fragment, passes) {
  const words = new URLSearchParams(fragment.replace(/^#/, ''));
  if (!words.has('zoom')) return null;
  const place = {
    ...start,
    pass: within(number(words.get('pass')), passes.length, 0),
    zoom: words.get('zoom'),
    module: words.get('module') || '',
    head: number(words.get('head')),
    view: words.get('view') || ''
  };
  const pass = passes[place.pass], op = words.has('op') ? pass.index(words.get('op')) : -1;
  if (op >= 0) place.step = Math.max(0, pass.values[op].step);
  place.time = timeOfText(words.get('time'), pass);
  place.gradient = words.has('gradient');
  place.value = pass.index(words.get(place.gradient ? 'gradient' : 'value') || '');
  if (place.value >= 0 && words.has('cell')) {
    const indices = words.get('cell').split(',').filter(Boolean).map(number);
    place.cell = cellAt(indices, pass.values[place.value].shape);
  }
  return checked(place, passes);
}

tessera.place = {
  start,
  checked,
  fragmentOf,
  placeOf,
  stepAt,
  timeOf,
  indicesOf,
  cellAt,
  isBelow,
  size
};

const views = [];

/**
 * Adds a view: {id, title, where, order, shows(place, pass), render(container, place, pass), key(place),
 * update(container, place, pass)}. where: 'main' (a tab beside the zoom's own; the default), 'top' (a line
 * that is always there) or 'cell' (a section of the panel of the chosen number). The container is kept, and
 * update() called where there is one, while key(place) stays the same; without key() it is the pass, zoom,
 * module, step and value. A view leads on by tessera.frame.go({value, gradient, cell}) or any other part of a
 * place.
 */
function register(view) {
  views.push({where: 'main', order: 0, shows: () => true, ...view});
  views.sort((a, b) => a.order - b.order);
}

const defaultKey = (place) => [place.pass, place.zoom, place.module, place.step, place.value].join(' ');

tessera.views = {
  register,
  /** The views of a part of the page that have something to show at this place. */
  at: (where, place, pass) => views.filter((view) => view.where === where && view.shows(place, pass)),
  keyOf: (view, place) => `${view.id} ${view.key ? view.key(place) : defaultKey(place)}`,
};
})(globalThis.tessera = globalThis.tessera || {});
