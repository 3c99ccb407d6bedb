// The four matrices of an attention head, each with its map over the patches for one query.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  /** What is drawn of an attention, in the order in which it is computed. */
  draw.attentionParts = [
    {id: 'scores', title: 'scores', of: 'scores', gradient: false, kind: 'diverging'},
    {id: 'softmax', title: 'softmax', of: 'probabilities', gradient: false, kind: 'sequential'},
    {id: 'dsoftmax', title: 'dL/dsoftmax', of: 'probabilities', gradient: true, kind: 'diverging'},
    {id: 'dscores', title: 'dL/dscores', of: 'scores', gradient: true, kind: 'diverging'},
  ];

  draw.attentionValues = (pass, a, part) => part.gradient ? pass.gradient(a[part.of]) : pass.value(a[part.of]);

  // The same attention in another pass, by its key.
  const counterpart = (pass, key) => draw.attentions(pass).find((a) => a.key === key);

  /** One scale of a part for all heads, and for all passes that are compared. */
  draw.attentionScale = function (peers, key, part, log) {
    const arrays = peers.map((pass) => {
      const a = counterpart(pass, key);
      return a ? draw.attentionValues(pass, a, part) : null;
    });
    const limit = draw.limitOf(...arrays);
    return draw.scale({kind: part.kind, limit, log, unit: part.kind === 'sequential' ? 'probability' : part.title});
  };

  // Probabilities and gradients differ by powers of ten; so do scores with the -100 of pairs from opposite sides.
  const isLog = (a, part) => part.id !== 'scores' || a.shift > 0;

  /** Where a place of the grid is among the keys of a group: its token, or -1 outside the group. */
  function tokensByPlace(a, group) {
    const tokens = new Int32Array(a.layout.grid ** 2).fill(-1);
    a.cells[group].forEach((cell, t) => { tokens[cell] = t + a.prefix; });
    return tokens;
  }

  /** The map over the patches of one part: set(state) moves it to another head, group or query. */
  function patchMap(pass, a, part, {state, scale, values, pick, size, read}) {
    const grid = a.layout.grid, s = state.values;
    let tokens = null, group = -1;
    const at = (r, c) => {
      if (group !== s.group) {
        group = s.group;
        tokens = tokensByPlace(a, group);
      }
      const token = tokens[r * grid + c];
      return token < 0 ? -1 : a.at(s.image, s.group, s.head, s.query, token);
    };
    const map = draw.heatmap({rows: grid, cols: grid, at, values, scale, dtype: pass.values[a.scores].dtype,
      name: part.title, label: `${part.title} over the patches`, picture: draw.pictureOf(pass, s.image),
      cell: size / grid, cellName: (r, c) => `key patch (${r}, ${c})`, outside: `not in this query's ${a.kind}`,
      shade: () => true, read, pick: (cell) => pick(part, cell)});
    const prefix = draw.element('div', {class: 'draw-prefixes'});
    function refresh() {
      map.set({picture: draw.pictureOf(pass, s.image)});
      const chips = [];
      for (let t = 0; t < a.prefix && !a.classQuery; ++t) {
        const cell = a.at(s.image, s.group, s.head, s.query, t);
        chips.push(draw.prefixChip(scale, values[cell], draw.tokenName(a, s.group, t), pass.values[a.scores].dtype,
          () => pick(part, cell)));
      }
      prefix.replaceChildren(...chips);
    }
    return {element: draw.element('div', {class: 'draw-map'}, [map.element, prefix]), refresh};
  }

  function matrix(pass, a, part, {state, scale, values, pick, size, read}) {
    const s = state.values, cell = Math.max(1, Math.min(44, Math.floor(size / a.keys)));
    const map = draw.heatmap({rows: a.queries, cols: a.keys, values, scale, cell, name: part.title,
      dtype: pass.values[a.scores].dtype, label: `${part.title}, queries by keys`,
      at: (r, c) => a.at(s.image, s.group, s.head, r, c),
      rowName: (r) => `query ${draw.queryName(a, s.group, r)}`, colName: (c) => `key ${draw.tokenName(a, s.group, c)}`,
      hover: (r) => { if (!s.pinned) state.set({query: r}); }, read, pick: (at) => pick(part, at)});
    const refresh = (change) => {
      if (Object.keys(change).every((key) => key === 'query' || key === 'pinned')) map.mark(s.query);
      else map.set({marked: s.query});
    };
    return {element: draw.element('div', {class: 'draw-scroll'}, [map.element]), refresh};
  }

  /**
   * The column of a part: its legend, its map (where the tokens' places are known), its matrix.
   * Gives {element, refresh(change)}.
   */
  draw.attentionColumn = function (pass, a, part, {state, peers, pick, size = 208}) {
    const values = draw.attentionValues(pass, a, part);
    if (!values)
      return {element: draw.figure(part.title, draw.noGradient(pass, a[part.of])),
        refresh: () => {}};
    const scale = draw.attentionScale(peers, a.key, part, state.values.log && isLog(a, part));
    const line = draw.element('output', {class: 'draw-readout', 'aria-live': 'polite'});
    const context = {state, scale, values, pick, size, read: (text) => { line.textContent = text; }};
    const map = a.cells ? patchMap(pass, a, part, context) : null, table = matrix(pass, a, part, context);
    const width = `${Math.max(size, a.keys)}px`;
    const element = draw.element('figure', {class: 'draw-figure', data: {part: part.id}, style: {width}}, [
      draw.element('figcaption', {text: part.title}),
      draw.element('div', {class: 'draw-above'}, [line, draw.legend(scale, draw.countSpecial(values), 'all heads')]),
      map ? map.element : null, table.element]);
    return {element, refresh(change) {
      if (map) map.refresh();
      table.refresh(change);
    }};
  };

  /** Thumbnails of all heads of one part, a button each. */
  draw.headChooser = function (pass, a, part, {state, peers, size = 66}) {
    const values = draw.attentionValues(pass, a, part), s = state.values;
    const scale = draw.attentionScale(peers, a.key, part, s.log && isLog(a, part));
    const buttons = Array.from({length: a.heads}, (_, head) => {
      const canvas = draw.element('canvas', {class: 'draw-thumbnail', 'aria-hidden': 'true'});
      draw.keepPainted(canvas, () => paintThumbnail(canvas, a, {values, scale, head, state: s, size}));
      return draw.element('button', {type: 'button', class: 'draw-head', data: {head},
        on: {click: () => state.set({head})}}, [canvas, draw.element('span', {text: `head ${head}`})]);
    });
    const refresh = (change) => buttons.forEach((button, head) => {
      button.setAttribute('aria-pressed', String(head === s.head));
      if ('group' in change || 'image' in change)
        paintThumbnail(button.firstChild, a, {values, scale, head, state: s, size});
    });
    return {element: draw.element('div', {class: 'draw-heads', role: 'group', 'aria-label': `heads, by ${part.title}`},
      buttons), refresh};
  };

  function paintThumbnail(canvas, a, {values, scale, head, state, size}) {
    canvas.width = a.keys;
    canvas.height = a.queries;
    Object.assign(canvas.style, {width: `${size}px`, height: a.queries === 1 ? '12px' : `${size}px`});
    if (!values) return;
    const context = canvas.getContext('2d'), image = context.createImageData(a.keys, a.queries);
    const offset = a.offset(state.image, state.group, head), theme = draw.theme();
    for (let i = 0; i < a.keys * a.queries; ++i) scale.write(values[offset + i], image.data, 4 * i, theme);
    context.putImageData(image, 0, 0);
  }
})(globalThis.tessera = globalThis.tessera || {});
