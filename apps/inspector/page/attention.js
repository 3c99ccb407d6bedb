// Attention as a person asks about it: the picture with the query patch, the heads, the matrices and the maps.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  /** The picture on which the query is chosen: follows the mouse, a click holds it, arrow keys move it. */
  function queryPicture(pass, a, {state, size}) {
    const s = state.values, grid = a.layout.grid;
    let own = null;
    const inside = (r, c) => (own || (own = new Set(a.cells[s.group]))).has(r * grid + c);
    const choose = (r, c, held) => {
      const found = a.classQuery ? null : draw.tokenAt(a, r * grid + c);
      if (found) state.set({group: found.group, query: found.token, ...(held === undefined ? {} : {pinned: held})});
    };
    const map = draw.heatmap({rows: grid, cols: grid, values: [0], scale: draw.scale({}), cell: size / grid,
      at: () => -1, picture: draw.pictureOf(pass, s.image), label: 'the picture: choose the query patch',
      cellName: (r, c) => `patch (${r}, ${c})`, outside: 'a click holds it as the query', pickAll: true, lines: true,
      read: () => {}, hover: (r, c) => { if (!s.pinned) choose(r, c); }, pick: (_, r, c) => choose(r, c, !s.pinned),
      markCell: true, shade: (r, c) => a.groups > 1 && !inside(r, c)});
    const buttons = [];
    for (let t = 0; t < a.prefix && !a.classQuery; ++t)
      buttons.push(draw.element('button', {type: 'button', class: 'draw-query', data: {query: t},
        text: `query: ${draw.tokenName(a, 0, t)}`, on: {click: () => state.set({query: t, pinned: true})}}));
    function refresh() {
      own = null;
      const cell = s.query >= a.prefix && !a.classQuery ? a.cells[s.group][s.query - a.prefix] : -1;
      map.set({picture: draw.pictureOf(pass, s.image), marked: cell});
      for (const button of buttons)
        button.setAttribute('aria-pressed', String(Number(button.dataset.query) === s.query));
    }
    return {element: draw.element('figure', {class: 'draw-figure draw-query-picture', style: {width: `${size}px`}}, [
      draw.element('figcaption', {text: 'picture'}),
      draw.element('div', {class: 'draw-above'}, [draw.element('p', {class: 'draw-readout',
        text: a.classQuery ? 'The class token is the query.'
          : 'The patch under the mouse is the query; a click holds it.'})]),
      map.element, draw.element('div', {class: 'draw-prefixes'}, buttons)]),
    refresh};
  }

  const argmax = (count, value) => {
    let best = -1;
    for (let i = 0; i < count; ++i) if (Number.isFinite(value(i)) && (best < 0 || value(i) > value(best))) best = i;
    return best;
  };

  /** What the four rows of this query say, in words. */
  draw.attentionSentence = function (pass, a, s) {
    const row = (part) => {
      const values = draw.attentionValues(pass, a, draw.attentionParts[part]);
      return values && ((k) => values[a.at(s.image, s.group, s.head, s.query, k)]);
    };
    const p = row(1), ds = row(3);
    const token = (k) => draw.tokenName(a, s.group, k).replace(/^class/, 'the class');
    const looked = argmax(a.keys, p);
    const words = [`Head ${s.head}, query ${draw.queryName(a, s.group, s.query)}: looks most at ${token(looked)}` +
      ` (softmax ${draw.short(p(looked))}).`];
    const pull = ds ? argmax(a.keys, (k) => Math.abs(ds(k))) : -1;
    if (!ds) words.push('No gradient flowed to its scores.');
    else if (pull < 0 || ds(pull) === 0) words.push('All dL/dscores of this query are 0.');
    else words.push(`The loss asks most for ${ds(pull) < 0 ? 'more' : 'less'} attention to ${token(pull)}` +
      ` (dL/dscore ${draw.short(ds(pull))}).`);
    return words.join(' ');
  };

  const numbered = (count, word) => Array.from({length: count}, (_, i) => [i, `${word} ${i}`]);

  function controls(pass, list, a, state) {
    const s = state.values, set = (key) => (value) => state.set({[key]: Number(value)});
    return draw.element('div', {class: 'draw-choices'}, [
      list.length > 1 ? draw.select('attention', list.map((x) => [x.key, x.title]), a.key,
        (key) => state.set({key})) : null,
      a.batch > 1 ? draw.select('image', numbered(a.batch, 'image'), s.image, set('image')) : null,
      a.groups > 1 ? draw.select(a.kind, numbered(a.groups, a.kind), s.group, set('group')) : null,
      draw.select('heads drawn by', draw.attentionParts.map((part) => [part.id, part.title]), s.part,
        (part) => state.set({part})),
      draw.select('colours', [['log', 'log'], ['linear', 'linear']], s.log ? 'log' : 'linear',
        (kind) => state.set({log: kind === 'log'})),
    ]);
  }

  // A state that fits an attention: what does not exist in it becomes the first.
  function fitted(a, s) {
    const within = (x, count) => x >= 0 && x < count ? x : 0;
    Object.assign(s, {image: within(s.image, a.batch), group: within(s.group, a.groups),
      head: within(s.head, a.heads), query: within(s.query, a.queries)});
  }

  /** The query that the loss feels most in a head: that of the largest |dL/dscore|, a patch where there are any. */
  draw.busiestQuery = function (pass, a, head) {
    const slopes = pass.gradient(a.scores), first = a.queries > a.prefix ? a.prefix : 0;
    let best = first, most = 0;
    for (let query = first; slopes && query < a.queries; ++query)
      for (let key = 0; key < a.keys; ++key) {
        const size = Math.abs(slopes[a.at(0, 0, head, query, key)]);
        if (size > most) [best, most] = [query, size];
      }
    return best;
  };

  /** The state that a place asks for: of a cell of scores or probabilities, its head and query. */
  draw.attentionState = function (pass, a, place = {}) {
    const head = place.head >= 0 && place.head < a.heads ? place.head : 0;
    const s = {key: a.key, image: 0, group: 0, head, query: draw.busiestQuery(pass, a, head), pinned: false,
      part: 'dscores', log: true};
    if (place.cell >= 0 && (place.value === a.scores || place.value === a.probabilities)) {
      let rest = Math.floor(place.cell / a.keys);
      s.query = rest % a.queries;
      rest = Math.floor(rest / a.queries);
      s.head = rest % a.heads;
      rest = Math.floor(rest / a.heads);
      s.group = rest % a.groups;
      s.image = Math.floor(rest / a.groups);
    }
    fitted(a, s);
    return draw.shared(s);
  };

  // The side of a map, so that the picture and the four parts stand beside each other where there is room for it.
  const sideFor = (room) => Math.max(158, Math.min(290, Math.floor((room - 4 * 16) / 5) - 2));

  /**
   * The panel of an attention. list: attentions to choose from; state: draw.attentionState(), shared by panels beside
   * each other; peers: passes on the same scale; go(place) opens a cell; room: the width there is, in pixels.
   * Gives an element.
   */
  draw.attentionPanel = function (pass, list, {state, peers = [pass], go = null, room = 0}) {
    const element = draw.element('section', {class: 'draw-attention'});
    let parts = [], sentence = null, shown = null, size = sideFor(room || 1110);
    const pick = (part, cell) => { if (go) go({value: shown[part.of], gradient: part.gradient, cell}); };
    function build() {
      shown = list.find((a) => a.key === state.values.key) || list[0];
      fitted(shown, state.values);
      sentence = draw.element('p', {class: 'draw-sentence', 'aria-live': 'polite'});
      const heads = draw.headChooser(pass, shown, draw.attentionParts.find((part) => part.id === state.values.part),
        {state, peers});
      const picture = shown.cells && draw.pictureOf(pass, state.values.image)
        ? queryPicture(pass, shown, {state, size}) : null;
      const columns = draw.attentionParts.map((part) =>
        draw.attentionColumn(pass, shown, part, {state, peers, pick, size}));
      parts = [heads, picture, ...columns].filter(Boolean);
      element.replaceChildren(controls(pass, list, shown, state),
        draw.element('p', {class: 'draw-note', text: draw.layoutSentence(shown)}), heads.element, sentence,
        draw.element('div', {class: 'draw-row draw-parts'}, parts.slice(1).map((part) => part.element)));
      refresh({query: state.values.query});
    }
    function refresh(change) {
      fitted(shown, state.values);
      for (const part of parts) part.refresh(change);
      sentence.textContent = draw.attentionSentence(pass, shown, state.values) +
        (state.values.pinned ? ' Held; click the picture to follow the mouse again.' : '');
    }
    state.subscribe((change) => {
      if (!element.isConnected && element.dataset.shown) return;
      if ('key' in change || 'part' in change || 'log' in change) build();
      else refresh(change);
    });
    build();
    new ResizeObserver(() => {
      const side = sideFor(element.clientWidth);
      if (Math.abs(side - size) < 6 || !element.clientWidth) return;
      size = side;
      build();
    }).observe(element);
    element.dataset.shown = 'yes';
    return element;
  };
})(globalThis.tessera = globalThis.tessera || {});
