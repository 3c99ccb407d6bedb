// What has been computed at a time of the pass: values forward, gradients backward.
(function(tessera) {
'use strict';

/** Steps that pass a gradient on: those whose output got one. */
const flows = (pass, step) => pass.values[pass.steps[step].output].hasGradient;

/**
 * The steps that add to a gradient, in the order in which the backward pass runs them: the last step first.
 */
function givers(pass, i) {
  const steps = pass.values[i].readers.map((reader) => reader.step).filter((step) => flows(pass, step));
  return [...new Set(steps)].sort((a, b) => b - a);
}

/** Whether a value exists at this time. */
const valueReady = (pass, i, time) => pass.values[i].step < 0 || time >= pass.values[i].step;

/**
 * The state of a gradient at this time: {state: 'ready' | 'not yet' | 'partly' | 'none', came, of}. It is the
 * sum of what the steps that read the value give it; the loss's own is 1 when the backward pass begins.
 */
function gradientAt(pass, i, time) {
  if (!pass.values[i].hasGradient) return {state: 'none', came: 0, of: 0};
  const steps = givers(pass, i), total = pass.steps.length;
  if (!steps.length) return {state: time >= total ? 'ready' : 'not yet', came: 0, of: 0};
  const came = steps.filter((step) => time >= 2 * total - 1 - step).length;
  return {state: came === steps.length ? 'ready' : came ? 'partly' : 'not yet', came, of: steps.length};
}

/** Whether the numbers of a tensor can be shown: a value or gradient that exists at this time. */
function ready(pass, i, gradient, time) {
  return gradient ? gradientAt(pass, i, time).state === 'ready' : valueReady(pass, i, time);
}

/** Why there are no numbers, in words; '' where there are. */
function whyNot(pass, i, gradient, time) {
  if (!gradient) return valueReady(pass, i, time) ? '' : 'not yet: its step has not run';
  const {state, came, of} = gradientAt(pass, i, time);
  if (state === 'ready') return '';
  if (state === 'none') return noGradient(pass, i);
  if (state === 'partly') return `not yet: ${came} of ${of} steps that read it have given their part`;
  return 'not yet: the backward pass has not come here';
}

/** Why no gradient flowed to a tensor at all. */
function noGradient(pass, i) {
  const told = tessera.zeros && tessera.zeros.ofTensor(pass, i);
  if (told) return told;
  return pass.values[i].kind === 'constant' ? 'none: it is a constant, nothing asks for its gradient' :
                                              'none flowed: no path leads from it to the loss';
}

/** The next time at which something happens: backward, steps that no gradient reaches are passed over. */
function nextTime(pass, time, direction) {
  const total = pass.steps.length;
  for (let t = time + direction; t >= 0 && t <= 2 * total; t += direction)
    if (t <= total - 1 || t === 2 * total || flows(pass, 2 * total - 1 - t)) return t;
  return time;
}

const silent = (pass) => pass.steps.filter((step) => !flows(pass, step.index)).length;

tessera.flow = {
  flows,
  givers,
  valueReady,
  gradientAt,
  ready,
  whyNot,
  noGradient,
  nextTime,
  silent
};
})(globalThis.tessera = globalThis.tessera || {});
