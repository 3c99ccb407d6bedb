// The frame: the one place that the reader is at, how it changes, and the parts of the page that follow it.
(function(tessera) {
'use strict';

const {place: places, modules} = tessera;
const parts = [];
const frame = {
  place: null,
  parts,
  decoded: false
};

/**
 * Adds a part of the page: update(place, pass, before) is called after each change; before is null at first.
 */
frame.add = (part) => parts.push(part);

frame.pass = () => tessera.page.passes[frame.place.pass];

// Opening an op while time runs goes to that op's time, in the same half.
function timeOfStep(pass, step, time) {
  const now = places.stepAt(pass, time);
  return now.done ? time : places.timeOf(pass, step, now.backward);
}

function openStep(p, pass, change) {
  const now = places.stepAt(pass, p.time);
  if (!('time' in change)) p.time = timeOfStep(pass, p.step, p.time);
  if (!('value' in change)) {
    p.value = pass.steps[p.step].output;
    p.cell = -1;
    if (!now.done) p.gradient = now.backward;
  }
  if (p.zoom === 'op' && !('module' in change)) p.module = pass.steps[p.step].module;
}

// Time moved: the views go with the step under way.
function follow(p, pass) {
  const now = places.stepAt(pass, p.time);
  if (now.done) return;
  p.step = now.step;
  const step = pass.steps[now.step];
  if (p.zoom === 'op')
    p.module = step.module;
  else if (!places.isBelow(step.module, p.module))
    p.module = modules.sameDepth(step.module, p.module);
  p.gradient = now.backward;
  p.value = now.backward ? firstWithGradient(pass, step) : step.output;
  p.cell = -1;
}

function firstWithGradient(pass, step) {
  const found = step.inputs.find((i) => i >= 0 && pass.values[i].hasGradient);
  return found === undefined ? step.output : found;
}

// A value that the view does not show: the view goes where it is made.
function followValue(p, pass) {
  const made = modules.stepOf(pass, p.value);
  if (made < 0) return;
  const shown = pass.steps[p.step];
  if (p.zoom === 'op' && shown.output !== p.value && !shown.inputs.includes(p.value)) {
    p.step = made;
    p.module = pass.steps[made].module;
  } else if (
      p.zoom === 'block' &&
      !modules.node(pass, p.module)
           .steps.some((s) => pass.steps[s].output === p.value || pass.steps[s].inputs.includes(p.value))) {
    p.module = modules.sameDepth(pass.steps[made].module, p.module);
  }
}

function headOf(p, pass) {
  const {shape} = pass.values[p.value];
  return shape.length >= 4 ? places.indicesOf(p.cell, shape)[shape.length - 3] : p.head;
}

/** The place that a change leads to. What the change does not say follows from it. */
frame.after = function(change) {
  const before = frame.place, p = {...before, ...change};
  if (typeof p.pass === 'object') p.pass = Math.max(0, tessera.page.passes.indexOf(p.pass));
  const pass = tessera.page.passes[p.pass];
  if (p.pass !== before.pass) return moved(p, before, pass, change);
  if ('time' in change && !('step' in change))
    follow(p, pass);
  else if ('step' in change)
    openStep(p, pass, change);
  else if ('module' in change && !('value' in change)) {
    p.value = modules.node(pass, p.module).out;
    p.cell = -1;
  }
  if ('value' in change && !('cell' in change)) p.cell = -1;
  if ('value' in change && !('step' in change) && !('module' in change) && p.value >= 0) followValue(p, pass);
  if ('zoom' in change && !('view' in change)) p.view = '';
  if (p.cell >= 0 && p.value >= 0 && !('head' in change)) p.head = headOf(p, pass);
  return places.checked(p, tessera.page.passes);
};

// Another pass: the same names there.
function moved(p, before, pass, change) {
  const old = tessera.page.passes[before.pass];
  if (!('value' in change)) p.value = before.value < 0 ? -1 : pass.index(old.values[before.value].name);
  const output = pass.index(old.values[old.steps[p.step].output].name);
  if (!('step' in change) && output >= 0 && pass.values[output].step >= 0) p.step = pass.values[output].step;
  if (!('time' in change)) p.time = 2 * pass.steps.length;
  return places.checked(p, tessera.page.passes);
}

const same = (a, b) => Object.keys(a).every((key) => a[key] === b[key]);

/**
 * Goes to a changed place. Steps of time replace the fragment; all else can be undone by the browser's
 * "back".
 */
frame.go = function(change) {
  const next = frame.after(change);
  if (same(next, frame.place)) return;
  const replace = next.time !== frame.place.time && next.zoom === frame.place.zoom && next.cell < 0;
  frame.show(next);
  const text = places.fragmentOf(next, tessera.page.passes);
  if (replace && globalThis.history.replaceState)
    history.replaceState(null, '', text);
  else
    location.hash = text;
};

frame.show = function(next) {
  const before = frame.place;
  frame.place = next;
  const pass = frame.pass();
  for (const part of parts) part.update(next, pass, before);
};

/** Draws all again: when the numbers have come. */
frame.refresh = function() {
  frame.decoded = true;
  const {place} = frame;
  frame.place = null;
  frame.place = place;
  for (const part of parts) part.update(place, frame.pass(), null);
};

// The tensor that is shown first: the logits, whose gradient is the first that says something about the
// picture.
function valueToBegin(pass) {
  const found = ['logits', 'loss'].map((name) => pass.index(name)).find((i) => i >= 0);
  return found === undefined ? pass.steps[pass.steps.length - 1].output : found;
}

/** The place to begin with: what the fragment says, else a lesson's first step or the whole pass. */
frame.begin = function() {
  const {passes, kind} = tessera.page, pass = passes[0];
  const first = kind === 'lesson' ? {time: 0, value: pass.steps[0].output} :
                                    {time: 2 * pass.steps.length, value: valueToBegin(pass)};
  frame.show(places.placeOf(location.hash, passes) || places.checked({...places.start, ...first}, passes));
  window.addEventListener('hashchange', () => {
    const there = places.placeOf(location.hash, passes);
    if (there && !same(there, frame.place)) frame.show(there);
  });
};

tessera.frame = frame;
})(globalThis.tessera = globalThis.tessera || {});
