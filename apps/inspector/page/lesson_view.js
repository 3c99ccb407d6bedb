// A lesson: its words, the step under way with the numbers put in, and all numbers of the pass at once.
(function(tessera) {
'use strict';

const {flow, planes, place: places} = tessera;
const element = (...words) => tessera.draw.element(...words);
const longest = 8, most = 12;

const nameOf = (pass, i, gradient) => gradient ? `dL/d(${pass.values[i].name})` : pass.values[i].name;

/** A number in few characters; a shortened one says so by its sign, and has all digits on hover. */
function briefly(x, dtype) {
  const text = tessera.draw.exact(x, dtype);
  return text.length <= longest ? text : `\u2248${tessera.draw.short(x, 4)}`;
}

function words(lesson) {
  const next = (name, label) => name ?
      element(
          'p', {class: 'note'}, [`${label}: `, element('code', {text: `tessera inspect --lesson ${name}`})]) :
      null;
  return element('section', {class: 'lesson-words', 'aria-label': 'what to look at'}, [
    element('p', {class: 'look-at', text: lesson.look_at || ''}),
    lesson.question ?
        element(
            'details', {class: 'question'},
            [
              element('summary', {}, [element('strong', {text: 'Question. '}), lesson.question]),
              element('p', {class: 'answer', text: lesson.answer || ''})
            ]) :
        null,
    next(lesson.next, 'Next lesson'), next(lesson.previous, 'The one before')
  ]);
}

/** One line of a step: the sum that makes a number, with the numbers put in. */
function sumLine(pass, i, gradient, cell, told) {
  const name = tessera.cellPanel.nameOf(pass, {value: i, gradient, cell});
  const sum = told && told.substituted ? told.substituted : numberText(pass, i, gradient, cell);
  return element('li', {}, [
    element('button', {
      type: 'button',
      class: `plain ${gradient ? 'gradient' : 'value'}`,
      text: name,
      on: {click: () => tessera.frame.go({value: i, gradient, cell})}
    }),
    element('code', {text: ` = ${sum}`})
  ]);
}

function numberText(pass, i, gradient, cell) {
  const all = planes.read(pass, i, gradient);
  return all ? briefly(all[cell], pass.values[i].dtype) : '\u2026';
}

function linesOf(pass, i, gradient, explain) {
  const count = places.size(pass.values[i].shape), lines = [];
  for (let cell = 0; cell < Math.min(count, most); ++cell)
    lines.push(sumLine(pass, i, gradient, cell, explain(cell)));
  if (count > most)
    lines.push(element('li', {class: 'note', text: `${count - most} more: click a number to see its sum`}));
  return element('ul', {class: 'sum-lines'}, lines);
}

const toldOf = (pass, i, cell) =>
    tessera.explain && tessera.frame.decoded ? tessera.explain.value(pass, i, cell) : null;

// This step's own part of the gradient of an input.
function partOf(pass, i, step, cell) {
  if (!tessera.explain || !tessera.frame.decoded) return null;
  const told = tessera.explain.gradient(pass, i, cell);
  return (told.parts || []).find((part) => part.step === step) || told;
}

function givenTo(pass, step, i) {
  const givers = flow.givers(pass, i);
  const adds = givers.length > 1 ? `a part of it: ${givers.length} steps add up` : 'all of it';
  return element('div', {class: 'given'}, [
    element('p', {}, [element('b', {class: 'gradient', text: nameOf(pass, i, true)}), ` gets ${adds}`]),
    linesOf(pass, i, true, (cell) => partOf(pass, i, step.index, cell))
  ]);
}

function formulaOf(step, way) {
  return element('code', {class: 'formula-now', text: tessera.ops.formulas(step)[way] || ''});
}

// " = 4" for a gradient of one number.
function single(pass, i) {
  const all = pass.gradient(i);
  return all && all.length === 1 ? ` = ${briefly(all[0], pass.values[i].dtype)}` : '';
}

/** The step under way: forward the sum, backward the local slope times what came from above. */
function running(pass, time) {
  const now = places.stepAt(pass, time);
  if (now.done)
    return [
      element('h2', {text: 'The whole pass is done'}), element('p', {
        text:
            'Every value and every gradient is there. Step back with the left arrow, or begin again with Home.'
      })
    ];
  const step = pass.steps[now.step];
  if (!now.backward)
    return [
      element('h2', {}, ['Forward: ', element('span', {text: step.op})]), formulaOf(step, 'forward'),
      linesOf(pass, step.output, false, (cell) => toldOf(pass, step.output, cell))
    ];
  const begins = flow.givers(pass, step.output).length === 0;
  const wanted = [...new Set(step.inputs)].filter((i) => i >= 0 && pass.values[i].hasGradient);
  return [
    element('h2', {}, ['Backward: ', element('span', {text: step.op})]), formulaOf(step, 'backward'),
    element(
        'p', {class: 'from-above'},
        [
          begins ? 'The backward pass begins here: ' : 'From above came ',
          element('b', {class: 'gradient', text: nameOf(pass, step.output, true)}),
          begins ? ' is 1. ' : `${single(pass, step.output)}. `, 'The local slope times what came from above:'
        ]),
    ...wanted.map((i) => givenTo(pass, step, i))
  ];
}

function numberButton(pass, i, gradient, cell, x, place) {
  const chosen = place.value === i && place.gradient === gradient && place.cell === cell;
  return element('button', {
    type: 'button',
    class: `number${chosen ? ' chosen' : ''}`,
    text: briefly(x, pass.values[i].dtype),
    title: tessera.texts.full(x),
    'aria-label': `${tessera.cellPanel.nameOf(pass, {value: i, gradient, cell})} = ${tessera.draw.exact(x)}`,
    on: {click: () => tessera.frame.go({value: i, gradient, cell})}
  });
}

const shortReason = (pass, i) =>
    pass.values[i].kind === 'constant' ? 'none: a constant' : 'none: no path to the loss';

/** All numbers of a tensor as a small table; the axes before the last two stand below each other. */
function table(pass, i, gradient, place) {
  const why = flow.whyNot(pass, i, gradient, place.time), way = gradient ? 'gradient' : 'value';
  if (why) {
    const none = gradient && !pass.values[i].hasGradient;
    return element(
        'div', {
          class: `numbers-missing ${none ? 'none' : 'not-yet'}`,
          data: {way, state: none ? 'none' : 'not yet'},
          title: why
        },
        [
          element('span', {text: none ? shortReason(pass, i) : 'not yet'}),
          /^not yet: \d/.test(why) ? element('small', {text: why.slice(9)}) : null
        ]);
  }
  const all = planes.read(pass, i, gradient);
  if (!all) return element('div', {text: '\u2026'});
  const {cols} = planes.sizesOf(pass.values[i].shape), rows = all.length / Math.max(1, cols);
  const wide = cols > 12 ? ' wide' : '';
  return element('table', {class: `small-numbers ${way}${wide}`, data: {way}}, [
    element(
        'tbody', {},
        Array.from(
            {length: rows},
            (_, r) => element(
                'tr', {},
                Array.from({length: cols}, (__, c) => element('td', {}, [numberButton(
                                                                            pass, i, gradient, r * cols + c,
                                                                            all[r * cols + c], place)])))))
  ]);
}

// What the step under way does with a tensor.
function part(pass, i, place) {
  const now = places.stepAt(pass, place.time);
  if (now.done) return '';
  const step = pass.steps[now.step];
  if (step.output === i) return now.backward ? 'takes' : 'makes';
  return step.inputs.includes(i) ? now.backward && pass.values[i].hasGradient ? 'gives' : 'reads' : '';
}

// "multiply(a, b)", which leads to the op; "leaf" or "constant" for what no step made.
function origin(pass, value) {
  if (value.step < 0) return element('span', {class: 'origin', text: value.kind});
  const step = pass.steps[value.step];
  const names = step.inputs.filter((k) => k >= 0).map((k) => pass.values[k].name);
  return element('button', {
    type: 'button',
    class: 'plain origin',
    text: `${step.op}(${names.join(', ')})`,
    title: 'open this op',
    on: {click: () => tessera.frame.go({zoom: 'op', step: value.step})}
  });
}

function numbersFigure(pass, i, gradient, place) {
  const caption = gradient ? nameOf(pass, i, true) : 'value';
  return element('figure', {}, [
    element('figcaption', {class: gradient ? 'gradient' : 'value', text: caption}),
    table(pass, i, gradient, place)
  ]);
}

function card(pass, i, place) {
  const value = pass.values[i], role = part(pass, i, place);
  const tables = [false, true].map((gradient) => numbersFigure(pass, i, gradient, place));
  return element(
      'section', {class: `card ${role}`, data: {value: value.name, role}, 'aria-label': value.name}, [
        element('header', {}, [element('b', {text: value.name}), origin(pass, value)]),
        element('div', {class: 'card-tables'}, tables)
      ]);
}

function wayOf(pass, time) {
  const {done, backward} = places.stepAt(pass, time);
  return done ? 'done' : backward ? 'backward' : 'forward';
}

function side(pass, place) {
  const now =
      element('section', {class: 'running', 'aria-live': 'polite', data: {way: wayOf(pass, place.time)}});
  now.append(...running(pass, place.time));
  return element('div', {class: 'lesson-side'}, [words(tessera.page.lesson || {}), now]);
}

// The card under way comes into sight where the words and sums stay in it: beside the graph, or once a reader of a
// narrow page has scrolled past them.
function reveal(container) {
  const card = container.querySelector('.card.makes, .card.takes'), words = container.querySelector('.lesson-side');
  const stay = getComputedStyle(words).position === 'sticky' || words.getBoundingClientRect().bottom < 0;
  if (card && stay) card.scrollIntoView({block: 'nearest'});
}

function render(container, place, pass) {
  const view = document.getElementById('view'), scrolled = view.scrollTop;
  const open = container.querySelector('.question[open]') !== null;
  const graph = tessera.lessonGraph(pass, place, card);
  container.replaceChildren(element('div', {class: 'lesson'}, [side(pass, place), graph]));
  if (open) container.querySelector('.question').open = true;
  view.scrollTop = scrolled;
  reveal(container);
}

const ofModel = tessera.zoom.own.model;
tessera.zoom.own.model = {
  title: (place, pass) => tessera.page.kind === 'lesson' ? 'lesson' : ofModel.title(place, pass),
  render: (container, place, pass) =>
      (tessera.page.kind === 'lesson' ? render : ofModel.render)(container, place, pass),
};
tessera.lessonView = {render};
})(globalThis.tessera = globalThis.tessera || {});
