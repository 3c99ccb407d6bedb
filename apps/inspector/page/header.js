// The head of the page: what was run, on which picture, what was asked for and what came out; search, light
// and help.
(function(tessera) {
'use strict';

const element = (...words) => tessera.draw.element(...words);

const className = (pass, index) => index < 0 ? null :
    pass.classes[index] === undefined        ? String(index) :
                                               `${pass.classes[index]} (${index})`;

function fact(term, text, id = null, title = null) {
  return text === null ?
      [] :
      [element('div', {class: 'fact', id, title}, [element('dt', {text: term}), element('dd', {text})])];
}

// What cannot be read at a glance: how the answer compares with the class asked for.
function answer(pass) {
  const predicted = className(pass, pass.predicted);
  if (predicted === null || pass.target < 0) return predicted;
  return `${predicted} ${pass.predicted === pass.target ? '\u2713 as asked' : '\u2717 another'}`;
}

// A class where classes are told apart; else what the loss is, in words.
function asked(pass) {
  return pass.asks && pass.predicted < 0 ? pass.asks : className(pass, pass.target);
}

function sourceOf(pass) {
  const {kind, title} = tessera.page;
  return kind !== 'lesson' && pass.source && pass.source !== title ? pass.source : null;
}

function facts(pass) {
  const loss = tessera.draw.exact(pass.loss, pass.dtype);
  return element('dl', {class: 'facts'}, [
    ...fact('from', sourceOf(pass), 'source'),
    ...fact('asked for', asked(pass), 'asked', pass.asks || null),
    ...fact('predicted', answer(pass), 'predicted'),
    ...fact(
        'loss', Number.isFinite(pass.loss) ? tessera.draw.short(pass.loss, 6) : loss, 'loss',
        pass.asks ? `${loss}: ${pass.asks}` : loss),
    ...fact(
        'numbers', `${pass.dtype}, exact`, null,
        `All values and gradients are the engine's own ${pass.dtype} numbers.`),
  ]);
}

function picture(pass) {
  if (!pass.picture) return [];
  const {width, height, rgba} = pass.picture;
  const canvas = element('canvas', {
    class: 'thumbnail',
    width,
    height,
    role: 'img',
    'aria-label': `The picture, ${width} by ${height} pixels`,
    title: 'the picture as it went in'
  });
  canvas.getContext('2d').putImageData(new ImageData(rgba, width, height), 0, 0);
  return [canvas];
}

function passChooser(place) {
  const {passes} = tessera.page;
  if (passes.length < 2) return [];
  const name = (pass) => pass.title || pass.source || tessera.page.title;
  return [tessera.draw.select(
      'shown', passes.map((pass, i) => [i, `${i + 1}: ${name(pass)}`]), place.pass,
      (i) => tessera.frame.go({pass: Number(i)}))];
}

const themes = ['system', 'light', 'dark'];
let theme = 'system';

/** The next of: as the system has it, light, dark. */
function switchTheme() {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  if (theme === 'system')
    delete document.documentElement.dataset.theme;
  else
    document.documentElement.dataset.theme = theme;
  document.getElementById('theme').textContent = `${theme === 'system' ? 'system' : theme} colours`;
}

function buttons() {
  return element('div', {class: 'tools'}, [
    tessera.search.element(),
    element('button', {
      type: 'button',
      id: 'theme',
      text: 'system colours',
      title: 'dark or light (t)',
      on: {click: switchTheme}
    }),
    element('button', {
      type: 'button',
      id: 'help-button',
      text: 'help',
      title: 'what the keys do (?)',
      'aria-haspopup': 'dialog',
      on: {click: () => tessera.help.open()}
    }),
  ]);
}

/** What the page does not have, said once. */
function leftOut() {
  const names = tessera.page.left_out || [];
  return names.length ?
      [element(
          'p',
          {class: 'left-out', role: 'note', text: `Left out of this page, as asked: ${names.join(', ')}.`})] :
      [];
}

let shown = '';

function update(place, pass) {
  const key = `${place.pass} ${tessera.frame.decoded}`;
  if (key === shown) return;
  shown = key;
  const {page} = tessera;
  const title = page.kind === 'lesson' && page.lesson && page.lesson.number ?
      `Lesson ${page.lesson.number}. ${page.title}` :
      page.title;
  document.getElementById('head').replaceChildren(
      ...picture(pass), element('div', {class: 'what'}, [element('h1', {text: title}), ...leftOut()]),
      facts(pass), ...passChooser(place),
      element(
          'output',
          {id: 'state', role: 'status', text: tessera.frame.decoded ? '' : 'reading the numbers\u2026'}),
      buttons());
}

tessera.header = {
  update,
  switchTheme
};
})(globalThis.tessera = globalThis.tessera || {});
