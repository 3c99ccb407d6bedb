// The time line: the pass forward, then backward, with buttons that step through it.
(function(tessera) {
'use strict';

const {place: places, flow, modules} = tessera;
const element = (...words) => tessera.draw.element(...words);
let track = null, cursor = null, told = null, playButton = null, builtFor = null, timer = 0;

const here = () => ({time: tessera.frame.place.time, pass: tessera.frame.pass()});

function move(direction) {
  const {time, pass} = here();
  tessera.frame.go({time: flow.nextTime(pass, time, direction)});
}

const first = () => tessera.frame.go({time: 0});
const last = () => tessera.frame.go({time: 2 * tessera.frame.pass().steps.length});

function stop() {
  clearInterval(timer);
  timer = 0;
  if (playButton) playButton.textContent = 'play';
}

/** Plays from here, or from the beginning when all is done; a second time pauses. */
function play() {
  if (timer) return stop();
  const {time, pass} = here();
  if (time >= 2 * pass.steps.length) first();
  const pause = pass.steps.length > 40 ? 160 : 1100;
  timer = setInterval(() => {
    move(1);
    if (here().time >= 2 * tessera.frame.pass().steps.length) stop();
  }, pause);
  playButton.textContent = 'pause';
  return undefined;
}

// Steps beside each other that belong to the same outermost module.
function runs(pass) {
  const found = [];
  for (const step of pass.steps) {
    const path = modules.pathsTo(step.module)[0] || '';
    const before = found[found.length - 1];
    if (before && before.path === path)
      before.to = step.index;
    else
      found.push({path, from: step.index, to: step.index});
  }
  return found;
}

function segment(pass, run, backward) {
  const total = 2 * pass.steps.length;
  const from = backward ? places.timeOf(pass, run.to, true) : run.from;
  const share = (run.to - run.from + 1) / total, name = run.path.replace(/^.*\.(?=\d+$)/, '');
  const label = share * 1200 < 8 * name.length ? '' : name;  // one that would be cut off tells nothing
  return element('span', {
    class: 'segment',
    title: run.path || 'outside of any module',
    data: {path: run.path},
    style: {left: `${100 * from / total}%`, width: `${100 * share}%`},
    text: label
  });
}

function half(pass, backward) {
  return element(
      'div', {class: `half ${backward ? 'backward' : 'forward'}`},
      [element(
          'span',
          {class: 'half-name', text: backward ? 'backward: gradients \u2192' : 'forward: values \u2192'})]);
}

function seek(event) {
  const box = track.getBoundingClientRect(), total = 2 * tessera.frame.pass().steps.length;
  const at = Math.floor((event.clientX - box.left) / box.width * total);
  tessera.frame.go({time: Math.max(0, Math.min(total - 1, at))});
}

const button = (text, title, click) =>
    element('button', {type: 'button', text, title, 'aria-label': title, on: {click}});

function build(pass) {
  const all = runs(pass);
  cursor = element('span', {class: 'cursor'});
  track = element(
      'div', {
        class: 'track',
        role: 'slider',
        tabindex: '0',
        'aria-label': 'time of the pass',
        'aria-valuemin': '0',
        'aria-valuemax': String(2 * pass.steps.length),
        on: {
          pointerdown: (event) => {
            track.setPointerCapture(event.pointerId);
            seek(event);
          },
          pointermove: (event) => {
            if (event.buttons & 1) seek(event);
          }
        }
      },
      [
        half(pass, false), half(pass, true), ...all.map((run) => segment(pass, run, false)),
        ...all.map((run) => segment(pass, run, true)), cursor
      ]);
  told = element('output', {id: 'now', 'aria-live': 'polite'});
  playButton = button('play', 'play and pause (space)', play);
  document.getElementById('time').replaceChildren(
      element(
          'div', {class: 'stepper', role: 'group', 'aria-label': 'stepper'},
          [
            button('|\u25c0', 'the first step (Home)', first),
            button('\u25c0', 'one step back (left arrow)', () => move(-1)), playButton,
            button('\u25b6', 'one step on (right arrow)', () => move(1)),
            button('\u25b6|', 'the whole pass (End)', last)
          ]),
      told, track);
}

/** What runs now, in words. */
function sentence(pass, time) {
  const now = places.stepAt(pass, time), total = pass.steps.length;
  if (now.done) {
    const silent = flow.silent(pass);
    const passed = silent ? ` No gradient reaches ${silent} of them.` : '';
    return `The whole pass: ${total} steps forward and backward.${passed}`;
  }
  const step = pass.steps[now.step], made = pass.values[step.output].name;
  if (!now.backward) return `Forward, step ${now.step + 1} of ${total}: ${step.op} makes ${made}`;
  const given =
      step.inputs.filter((i) => i >= 0 && pass.values[i].hasGradient).map((i) => pass.values[i].name);
  return `Backward, step ${total - now.step} of ${total}: ${step.op} takes dL/d(${made})` +
      (given.length ? `, gives to ${[...new Set(given)].join(', ')}` : '');
}

function update(place, pass) {
  if (builtFor !== pass) {
    stop();
    builtFor = pass;
    build(pass);
  }
  const now = places.stepAt(pass, place.time), total = 2 * pass.steps.length;
  const words = sentence(pass, place.time);
  told.textContent = words;
  told.dataset.way = now.done ? 'done' : now.backward ? 'backward' : 'forward';
  cursor.style.left = `${100 * Math.min(total, place.time + 0.5) / total}%`;
  cursor.hidden = now.done;
  track.setAttribute('aria-valuenow', String(place.time));
  track.setAttribute('aria-valuetext', words);
  for (const part of track.querySelectorAll('.segment'))
    part.classList.toggle(
        'shown',
        place.module !== '' && part.dataset.path !== '' &&
            modules.pathsTo(place.module)[0] === part.dataset.path);
}

tessera.timeline = {
  update,
  move,
  first,
  last,
  play,
  stop
};
})(globalThis.tessera = globalThis.tessera || {});
