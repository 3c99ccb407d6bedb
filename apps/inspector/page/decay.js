// Spatial decay: the gates of the tokens as maps and the matrix that they make; the five pictures of SPT.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  // The decay that is added to the scores of an attention: made by content_decay, or a constant of its shape.
  function decayOf(pass, a) {
    for (const step of pass.steps) {
      if (step.module !== a.module || step.index > a.step) continue;
      if (step.op === 'content_decay' && reaches(pass, step.output, a.scores)) {
        return {value: step.output, gate: step.inputs[0], gateShape: step.shapes[0], fixed: false};
      }
      const constant = step.op === 'add' ? step.inputs[1] : -1;
      if (constant < 0 || pass.values[constant].kind !== 'constant' || step.output !== a.scores) continue;
      const shape = pass.values[constant].shape;
      if (shape.length === 3 && shape[0] === a.heads && shape[2] === a.keys) return {value: constant, fixed: true};
    }
    return null;
  }

  function reaches(pass, from, to) {
    for (let value = from; value >= 0 && value <= to + 64;) {
      if (value === to) return true;
      const reader = pass.values[value].readers.find(({step}) => pass.steps[step].op !== 'softmax');
      if (!reader) return false;
      value = pass.steps[reader.step].output;
    }
    return false;
  }

  // The gate of each token of one head over the grid; row and column attentions hold it line by line.
  function gateMap(pass, a, decay, state, gradient, go) {
    const values = gradient ? pass.gradient(decay.gate) : pass.value(decay.gate);
    const title = gradient ? 'dL/dgate' : 'gate G = log sigmoid';
    if (!values) return draw.figure(title, draw.noGradient(pass, decay.gate));
    if (!a.cells) return draw.figure(title, draw.missing('Where these tokens lie on the picture is not known.'));
    const grid = a.layout.grid, tokens = decay.gateShape[decay.gateShape.length - 2];
    const scale = draw.scale({limit: draw.limitOf(values), unit: title, log: gradient});
    const places = new Int32Array(grid * grid).fill(-1);
    a.cells.forEach((cells, group) => cells.forEach((cell, t) => {
      places[cell] = ((state.image * a.groups + group) * tokens + t + a.prefix) * a.heads + state.head;
    }));
    const map = draw.heatmap({rows: grid, cols: grid, at: (r, c) => places[r * grid + c], values, scale, name: title,
      cell: 208 / grid, dtype: pass.values[decay.gate].dtype, picture: draw.pictureOf(pass, state.image),
      cellName: (r, c) => `patch (${r}, ${c})`,
      pick: go ? (cell) => go({value: decay.gate, gradient, cell}) : null});
    return draw.figure(title, map.element, draw.legend(scale, draw.countSpecial(values), 'all heads'));
  }

  function decayMatrix(pass, a, decay, state, gradient, go) {
    const values = gradient ? pass.gradient(decay.value) : pass.value(decay.value);
    const title = gradient ? 'dL/dM' : 'decay M, added to the scores';
    if (!values) return draw.figure(title, decay.fixed
      ? draw.missing('M is a constant: it has no gradient, and learns nothing.')
      : draw.noGradient(pass, decay.value));
    const scale = draw.scale({limit: draw.limitOf(values), unit: title, log: gradient});
    const at = (r, c) => decay.fixed ? (state.head * a.queries + r) * a.keys + c
      : a.at(state.image, state.group, state.head, r, c);
    const map = draw.heatmap({rows: a.queries, cols: a.keys, at, values, scale, name: gradient ? 'dL/dM' : 'M',
      cell: Math.max(1, Math.floor(208 / a.keys)), dtype: pass.values[decay.value].dtype,
      rowName: (r) => `query ${draw.tokenName(a, state.group, r)}`,
      colName: (c) => `key ${draw.tokenName(a, state.group, c)}`,
      pick: go ? (cell) => go({value: decay.value, gradient, cell}) : null});
    return draw.figure(title, map.element, draw.legend(scale, draw.countSpecial(values), 'all heads'));
  }

  /** The gates and the decay of every attention that has one; null for a model without. */
  draw.decayPanel = function (pass, {go = null} = {}) {
    const rows = draw.attentions(pass).map((a) => ({a, decay: decayOf(pass, a)})).filter((row) => row.decay);
    if (!rows.length) return null;
    const element = draw.element('section', {}), state = {row: 0, head: 0, group: 0, image: 0};
    const change = (key) => (value) => {
      state[key] = Number(value);
      build();
    };
    function build() {
      const {a, decay} = rows[state.row], count = (n, word) => Array.from({length: n}, (_, i) => [i, `${word} ${i}`]);
      state.head = Math.min(state.head, a.heads - 1);
      state.group = Math.min(state.group, a.groups - 1);
      const figures = [decayMatrix(pass, a, decay, state, false, go), decayMatrix(pass, a, decay, state, true, go)];
      if (!decay.fixed)
        figures.unshift(...[false, true].map((gradient) => gateMap(pass, a, decay, state, gradient, go)));
      element.replaceChildren(
        draw.element('div', {class: 'draw-choices'}, [
          draw.select('attention', rows.map((row, i) => [i, row.a.title]), state.row, change('row')),
          draw.select('head', count(a.heads, 'head'), state.head, change('head')),
          a.groups > 1 ? draw.select(a.kind, count(a.groups, a.kind), state.group, change('group')) : null]),
        draw.element('p', {class: 'draw-sentence', text: decay.fixed
          ? 'The decay depends on the distance of two patches alone: M = log(gamma) * distance, one gamma a head.'
          : 'A gate near 0 lets a patch be seen from afar; a strongly negative one hides it: ' +
            'M = -|(G_i + G_j) / 2 * distance * alpha|.'}),
        draw.element('div', {class: 'draw-row'}, figures));
    }
    build();
    return {name: 'decay', title: 'Spatial decay', element};
  };
})(globalThis.tessera = globalThis.tessera || {});
