// The panel of one number: what it is, the sum that made it, and the way back to the numbers looked at
// before.
(function(tessera) {
'use strict';

const {flow, planes, place: places, views} = tessera;
const element = (...words) => tessera.draw.element(...words);
const first = 20;
let history = [], at = -1, key = '', scrolled = null;

const numberOf = (pass, p) => {
  const all = planes.read(pass, p.value, p.gradient);
  return all ? all[p.cell] : undefined;
};

/** "dL/d(blocks.5.attn.scores)[0, 3, 12, 40]" */
function nameOf(pass, p) {
  const value = pass.values[p.value],
        where = value.shape.length ? `[${places.indicesOf(p.cell, value.shape).join(', ')}]` : '';
  return p.gradient ? `dL/d(${value.name})${where}` : `${value.name}${where}`;
}

function remember(p) {
  const now = history[at];
  if (now && ['pass', 'value', 'gradient', 'cell'].every((part) => now[part] === p[part])) {
    history[at] = p;
    return;
  }
  history = [...history.slice(0, at + 1), p].slice(-200);
  at = history.length - 1;
}

function travel(direction) {
  if (!history[at + direction]) return;
  at += direction;
  const {pass, value, gradient, cell, zoom, module, step, head} = history[at];
  tessera.frame.go({pass, value, gradient, cell, zoom, module, step, head, time: tessera.frame.place.time});
}

function toolbar() {
  const button = (text, title, click, enabled) =>
      element('button', {type: 'button', text, title, 'aria-label': title, disabled: !enabled, on: {click}});
  return element('div', {class: 'cell-tools'}, [
    button('\u2190', 'the number looked at before ( , )', () => travel(-1), at > 0),
    button('\u2192', 'forward again ( . )', () => travel(1), at + 1 < history.length),
    button('close', 'close (Esc)', () => tessera.frame.go({cell: -1}), true)
  ]);
}

// A number of the same cell, value or gradient, chosen or to be chosen.
function side(pass, p, gradient) {
  const {dtype} = pass.values[p.value], why = flow.whyNot(pass, p.value, gradient, p.time);
  const number = numberOf(pass, {...p, gradient});
  return element(
      'button', {
        type: 'button',
        class: `side ${gradient ? 'gradient' : 'value'}`,
        'aria-pressed': String(p.gradient === gradient),
        title: why || tessera.texts.full(number),
        on: {click: () => tessera.frame.go({gradient, cell: p.cell})}
      },
      [
        element('span', {class: 'side-name', text: gradient ? 'gradient' : 'value'}), element('span', {
          class: `side-number${why ? ' not-yet' : ''}`,
          text: !why                                        ? tessera.draw.exact(number, dtype) :
              gradient && !pass.values[p.value].hasGradient ? 'none' :
                                                              'not yet'
        })
      ]);
}

function digits(number) {
  return element(
      'details', {class: 'digits'},
      [element('summary', {text: 'all its digits'}), element('code', {text: tessera.texts.full(number)})]);
}

function factorButton(pass, factor) {
  const text =
      factor.value === undefined ? factor.label : `${factor.label} = ${tessera.draw.short(factor.value, 5)}`;
  if (!factor.place) return element('span', {class: 'factor', text});
  const {value, gradient, cell} = factor.place;
  return element('button', {
    type: 'button',
    class: `factor ${gradient ? 'gradient' : 'value'}`,
    text,
    title: `${nameOf(pass, factor.place)} = ${
        tessera.draw.exact(numberOf(pass, factor.place), pass.values[value].dtype)}`,
    on: {click: () => tessera.frame.go({value, gradient: Boolean(gradient), cell})}
  });
}

function termRow(pass, term, largest) {
  const share = largest > 0 ? 50 * Math.abs(term.value) / largest : 0;
  const bar = element('span', {
    class: `term-bar ${term.value < 0 ? 'negative' : 'positive'}`,
    style: term.value < 0 ? {right: '50%', width: `${share}%`} : {left: '50%', width: `${share}%`}
  });
  const factors = (term.factors || []).map((factor) => factorButton(pass, factor));
  return element('li', {class: 'term'}, [
    element('span', {
      class: 'term-value',
      text: tessera.draw.short(term.value, 6),
      title: tessera.texts.full(term.value)
    }),
    element('span', {class: 'term-track', 'aria-hidden': 'true'}, [bar]),
    element('span', {class: 'term-factors'}, factors.length ? factors : [element('span', {text: term.label})])
  ]);
}

/** The largest terms with their bars, and what the others add up to. */
function termList(pass, terms, shown, more) {
  const largest = terms.reduce((most, term) => Math.max(most, Math.abs(term.value) || 0), 0),
        rest = terms.slice(shown);
  const restSum = rest.reduce((sum, term) => sum + term.value, 0);
  const count = terms.length === 1 ? 'One term' :
      rest.length                  ? `The largest ${shown} of ${terms.length} terms` :
                                     `${terms.length} terms`;
  return element('div', {class: 'terms'}, [
    element('p', {class: 'term-count', text: count}),
    element('ol', {}, terms.slice(0, shown).map((term) => termRow(pass, term, largest))),
    ...(rest.length ?
            [element(
                'p', {class: 'rest'},
                [
                  `The other ${rest.length} terms add up to ${tessera.draw.short(restSum, 6)}. `,
                  element('button', {type: 'button', text: 'show more', on: {click: () => more(shown + 80)}})
                ])] :
            [])
  ]);
}

function sum(pass, told) {
  const box = element('div', {class: 'sum'});
  const draw = (shown) => box.replaceChildren(
      ...[told.formula ? element('code', {class: 'sum-formula', text: told.formula}) : null,
          told.substituted ? element('code', {class: 'sum-numbers', text: told.substituted}) : null,
          told.terms && told.terms.length ? termList(pass, told.terms, shown, draw) : null,
          told.note ? element('p', {class: 'note', text: told.note}) : null]
          .filter(Boolean));
  draw(first);
  return box;
}

/** The explanation: one sum, or for a gradient one from each step that reads the value. */
function explanation(pass, p) {
  if (!tessera.explain) return [];
  const told = p.gradient ? tessera.explain.gradient(pass, p.value, p.cell) :
                            tessera.explain.value(pass, p.value, p.cell);
  if (!told) return [];
  const parts = told.parts || [], several = parts.length > 1;
  const boxes = [
    sum(pass, several ? {...told, terms: [], note: ''} : noted(pass, p, told)),
    ...(several ? parts.map((part) => partBox(pass, part, parts.length < 4)) : [])
  ];
  return [element('h3', {text: 'Where it comes from'}), ...boxes, total(pass, p, told)];
}

// The reason of a zero is told once, above the sum.
const noted = (pass, p, told) => zeroReason(pass, p).length ? {...told, note: ''} : told;

function partBox(pass, part, open) {
  return element(
      'details', {class: 'part', open}, [element('summary', {text: partTitle(pass, part)}), sum(pass, part)]);
}

function partTitle(pass, part) {
  const step = pass.steps[part.step],
        made = step ? `${step.op} (${pass.values[step.output].name})` : part.label || 'a part';
  return `${made} gives ${tessera.draw.short(part.total, 6)}`;
}

// The sum is of doubles; the engine adds in its own type and order.
function total(pass, p, told) {
  const number = numberOf(pass, p), {dtype} = pass.values[p.value];
  if (!Number.isFinite(told.total) || !told.terms || !told.terms.length) return element('span');
  const off = Math.abs(told.total - number),
        words = off === 0 ? 'the same number' : `${tessera.draw.short(off, 2)} away`;
  return element('p', {
    class: 'total',
    text: `The sum in double is ${tessera.draw.exact(told.total)}; the engine's ${dtype} is ${words}.`
  });
}

function zeroReason(pass, p) {
  if (!p.gradient || numberOf(pass, p) !== 0 || !tessera.zeros) return [];
  const reason = tessera.zeros.reason(pass, p.value, p.cell);
  return reason ? [element('p', {class: 'reason', role: 'note', text: reason})] : [];
}

function body(pass, p) {
  const why = flow.whyNot(pass, p.value, p.gradient, p.time);
  if (why)
    return [element('p', {
      class: `missing ${p.gradient && !pass.values[p.value].hasGradient ? 'none' : 'not-yet'}`,
      role: 'note',
      text: why
    })];
  if (!tessera.frame.decoded) return [element('p', {class: 'note', text: 'reading the numbers\u2026'})];
  const sections = views.at('cell', p, pass).map((view) => {
    const container = element('section', {data: {view: view.id}});
    view.render(container, p, pass);
    return container;
  });
  return [
    digits(numberOf(pass, p)), ...zeroReason(pass, p), ...tessera.proof.sections(pass, p),
    ...explanation(pass, p), ...sections
  ];
}

function update(place, pass) {
  const box = document.getElementById('cell');
  // The page is not asked where it is scrolled, since it would be laid out anew for the answer.
  if (scrolled === null) {
    scrolled = false;
    box.addEventListener('scroll', () => scrolled = box.scrollTop > 0);
  }
  document.body.classList.toggle('has-cell', place.cell >= 0);
  box.hidden = place.cell < 0;
  if (place.cell < 0) {
    key = '';
    return;
  }
  const now =
      [place.pass, place.value, place.gradient, place.cell, place.time, tessera.frame.decoded].join(' ');
  remember(place);
  if (now === key) return;
  key = now;
  box.replaceChildren(
      toolbar(), element('h2', {id: 'cell-name', text: nameOf(pass, place)}),
      element(
          'div', {class: 'sides'},
          tessera.frame.decoded ? [side(pass, place, false), side(pass, place, true)] : []),
      ...body(pass, place));
  if (scrolled) box.scrollTop = 0;
}

tessera.cellPanel = {
  update,
  back: () => travel(-1),
  forward: () => travel(1),
  nameOf,
  numberOf
};
})(globalThis.tessera = globalThis.tessera || {});
