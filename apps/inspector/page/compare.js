// Two passes side by side: same place, same zoom, same colour scale, and the difference.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  const className = (pass, k) => k >= 0 ? (pass.classes && pass.classes[k] ? pass.classes[k] : `class ${k}`) : 'none';

  function summaryRows(passes) {
    const [a, b] = passes, probabilities = passes.map(draw.probabilities);
    const likely = (i, pass) => probabilities[i] && pass.target >= 0 ? probabilities[i][pass.target] : null;
    const rows = [['loss', a.loss, b.loss]];
    if (likely(0, a) !== null && likely(1, b) !== null)
      rows.push(['probability of the target', likely(0, a), likely(1, b)]);
    const gradient = passes.map((pass) => draw.rms(pass.gradient(pass.index('input'))));
    if (gradient.every((x) => x !== null)) rows.push(['RMS of dL/dinput', ...gradient]);
    return rows;
  }

  const cells = (tag, words) => words.map((text) => draw.element(tag, {text}));

  /** Loss, prediction and what the loss feels, of both, with the difference. */
  draw.summaryTable = function (passes, titles) {
    const rows = summaryRows(passes).map(([name, a, b]) => draw.element('tr', {},
      [draw.element('th', {text: name, scope: 'row'}), ...cells('td', [draw.exact(Number(a.toPrecision(7))),
        draw.exact(Number(b.toPrecision(7))), draw.short(b - a, 4)])]));
    const classRow = (name, key) => passes.some((pass) => pass[key] >= 0) ? draw.element('tr', {}, [
      draw.element('th', {text: name, scope: 'row'}),
      ...cells('td', [...passes.map((pass) => className(pass, pass[key])), ''])]) : '';
    return draw.element('table', {class: 'draw-table'}, [
      draw.element('thead', {}, [draw.element('tr', {}, cells('th', ['', ...titles, 'difference']))]),
      draw.element('tbody', {}, [classRow('target', 'target'), classRow('predicted', 'predicted'), ...rows])]);
  };

  function difference(a, b) {
    if (!a || !b || a.length !== b.length) return null;
    return Float64Array.from(a, (x, i) => x === b[i] ? 0 : b[i] - x);
  }

  const sameShape = (a, b) => a.length === b.length && a.every((n, axis) => n === b[axis]);

  // A value, or its gradient, in both passes on one scale, and the second less the first on its own.
  function threeFigures(passes, values, titles, gradient, state, go) {
    const read = (i) => gradient ? passes[i].gradient(values[i]) : passes[i].value(values[i]);
    const arrays = [read(0), read(1)], name = draw.nameOf(passes[0], values[0], gradient);
    const log = gradient && state.log;
    const figures = arrays.map((array, i) => {
      const title = `${name}, ${titles[i]}`;
      if (!array) return draw.figure(title, draw.noGradient(passes[i], values[i]));
      return draw.tensorFigure(passes[i], values[i], {values: array, gradient, others: [arrays[1 - i]], title, state,
        log, pick: go && ((cell) => go({pass: passes[i], value: values[i], gradient, cell}))});
    });
    const change = difference(...arrays);
    if (change) figures.push(draw.tensorFigure(passes[0], values[0], {values: change, gradient, state, log,
      title: `difference (${titles[1]} - ${titles[0]})`}));
    else figures.push(draw.missing('No difference: one of the two is not there.'));
    return draw.element('div', {class: 'draw-row'}, figures);
  }

  /** One tensor of both passes: values and gradients, each with the difference. name: of the first pass. */
  draw.tensorsBeside = function (passes, titles, name, {go = null, head = -1, cell = -1} = {}) {
    const values = passes.map((pass) => pass.index(name)), element = draw.element('div', {class: 'draw-tensor'});
    const missing = values.findIndex((value) => value < 0);
    if (missing >= 0) return draw.missing(`${titles[missing]} has no value ${name}.`);
    const shapes = values.map((value, i) => passes[i].values[value].shape);
    if (!sameShape(...shapes)) return draw.missing(`${name} is ${draw.shapeText(shapes[0])} in ${titles[0]} and ` +
      `${draw.shapeText(shapes[1])} in ${titles[1]}: cells of one have no counterpart in the other.`);
    const state = draw.tensorState(passes[0], values[0], {head, cell, size: 200});
    function build() {
      element.replaceChildren(draw.tensorChoices(shapes[0], state, (change) => {
        Object.assign(state, change);
        build();
      }), ...[false, true].map((gradient) => threeFigures(passes, values, titles, gradient, state, go)));
    }
    build();
    return element;
  };

  // Both attentions of the module at this place, one above the other so that their columns align.
  function attentionsBeside(passes, titles, module, {go, place, pass, room}) {
    const lists = passes.map((each) => draw.attentionsBelow(each, module));
    if (!module || !lists[0].length || !lists[1].some((a) => a.key === lists[0][0].key)) return null;
    const state = draw.attentionState(pass, lists[passes.indexOf(pass)][0], place);
    return draw.element('div', {}, passes.map((each, i) => draw.element('section', {}, [
      draw.element('h4', {text: titles[i]}),
      draw.attentionPanel(each, lists[i], {state, peers: passes, room,
        go: go && ((where) => go({pass: each, ...where}))})])));
  }

  /**
   * Two passes beside each other. name: the tensor at this place ('logits' without one); module: its attention is
   * shown too; go({pass, value, gradient, cell}) opens a cell.
   */
  draw.passesBeside = function (passes, titles, {name = 'logits', module = '', go = null, place = {}, room = 0} = {}) {
    const pictures = passes.map((pass) => draw.pictureOf(pass));
    const shown = pictures.map((picture, i) =>
      picture && draw.figure(titles[i], draw.patchedPicture(picture, 0, 120)));
    const sections = [draw.element('div', {class: 'draw-row'}, [...shown.filter(Boolean),
      draw.summaryTable(passes, titles)]), draw.element('h3', {text: name}),
    draw.tensorsBeside(passes, titles, name, {go, head: place.head, cell: place.cell})];
    const attentions = attentionsBeside(passes, titles, module, {go, place, pass: passes[0], room});
    if (attentions) sections.push(draw.element('h3', {text: 'attention'}), attentions);
    else sections.push(draw.element('h3', {text: 'all layers'}), draw.ladderPanel(passes[0], {peers: passes,
      titles, go: go && ((where) => go({pass: passes[0], ...where}))}));
    return draw.element('section', {class: 'draw-beside'}, sections);
  };

  const titleOf = (pass, i) => pass.title || `pass ${i}`;

  // Titles that differ, for two runs of one name too.
  function titlesOf(passes, all) {
    const titles = passes.map((pass) => titleOf(pass, all.indexOf(pass)));
    return titles[0] === titles[1] ? titles.map((title, i) => `${'AB'[i]}: ${title}`) : titles;
  }

  /** The two passes of a page that are compared: the main one and one given by --with. */
  draw.comparePanel = function (page, {pass = page.passes[0], go = null, name, module = '', place = {}, room} = {}) {
    const others = page.passes.filter((each) => each !== pass && each.role !== 'term');
    if (!others.length) return null;
    const element = draw.element('section', {class: 'draw-compare'});
    function build(other) {
      const pair = [pass, others[other]];
      element.replaceChildren(
        others.length > 1 ? draw.select('beside', others.map((each, i) => [i, titleOf(each, i)]), other,
          (i) => build(Number(i))) : '',
        draw.passesBeside(pair, titlesOf(pair, page.passes), {name, module, go, place, room}));
    }
    build(0);
    return element;
  };
})(globalThis.tessera = globalThis.tessera || {});
