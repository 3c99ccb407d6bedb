// What the terms of an attention do: the learned temperature, and tables over offsets (spatial prior, relative bias).
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  // The step that multiplies q.k by a learned scale, or null; its product gives the head's width d.
  function scaleStep(pass, value) {
    for (const {step, input} of value.readers) {
      const s = pass.steps[step], product = s.inputs[1 - input];
      if (s.op !== 'multiply' || product === undefined || product < 0) continue;
      const made = pass.steps[pass.values[product].step];
      if (made && made.op === 'matmul') return {width: made.shapes[0][made.shapes[0].length - 1]};
    }
    return null;
  }

  /** Learned scales in their order: [{value, module, width, values, gradient}]; a head's temperature is 1 / scale. */
  draw.temperatures = (pass) => pass.values.filter((value) => value.parameter && /(^|\.)scale$/.test(value.name))
    .map((value) => ({value: value.index, module: value.name.replace(/\.?scale$/, ''), found: scaleStep(pass, value),
      values: pass.value(value.index), gradient: pass.gradient(value.index)}))
    .filter((row) => row.found).map((row) => ({...row, width: row.found.width}));

  const shortModule = (module) => module.replace(/(blocks_token_only)\.(\d+)/, 'class $2').replace(/\.attn$/, '')
    .replace(/blocks\./, '').replace(/(layers|transformers)\.(\d+)\./, '$2.')
    .replace('tokens_to_token.attention', 'split ');

  const temperatureWords = (row, head) => `${row.module}, head ${head}: ` +
    `temperature ${draw.short(1 / row.values[head], 4)}, sqrt(d) = ${draw.short(Math.sqrt(row.width), 4)}, ` +
    `dL/dscale ${row.gradient ? draw.short(row.gradient[head]) : 'none'}`;

  function temperaturePanel(pass, go) {
    const rows = draw.temperatures(pass);
    if (!rows.length) return null;
    const dots = rows.flatMap((row, column) => Array.from(row.values, (scale, head) => ({column, y: 1 / scale, row,
      head, series: 1 / scale < Math.sqrt(row.width) ? 0 : 1, words: temperatureWords(row, head)})));
    const widths = [...new Set(rows.map((row) => row.width))];
    const chart = draw.dots({columns: rows.map((row) => shortModule(row.module)), dots,
      lines: widths.map((d) => ({y: Math.sqrt(d), words: `sqrt(d) = ${draw.short(Math.sqrt(d))}`})),
      yTitle: 'temperature = 1 / scale',
      label: 'learned temperature by depth and head',
      open: go ? (dot) => go({value: dot.row.value, gradient: false, cell: dot.head}) : null});
    const sharper = dots.filter((dot) => dot.series === 0).length;
    return {name: 'temperature', title: 'Learned temperature by depth and head', element: draw.element('section', {}, [
      draw.element('p', {class: 'draw-sentence', text: 'Plain attention divides by sqrt(d). Here each head ' +
        `has learned its own temperature: ${sharper} of ${dots.length} heads are sharper (blue, below the line), ` +
        `${dots.length - sharper} are not (orange).`}),
      draw.element('div', {class: 'draw-row'}, [chart, scaleGradients(pass, rows, go)])])};
  }

  // dL/dscale, a row a layer: which way each head wants its temperature to go.
  function scaleGradients(pass, rows, go) {
    const heads = Math.max(...rows.map((row) => row.values.length));
    const shown = new Float64Array(rows.length * heads).fill(NaN);
    rows.forEach((row, r) => (row.gradient || []).forEach((x, head) => { shown[r * heads + head] = x; }));
    const scale = draw.scale({limit: draw.limitOf(shown), log: true,
      unit: 'dL/dscale; above 0 the loss wants it warmer'});
    const map = draw.heatmap({rows: rows.length, cols: heads, values: shown, scale, cell: 22, name: 'dL/dscale',
      at: (r, c) => c < rows[r].values.length && rows[r].gradient ? r * heads + c : -1,
      dtype: pass.values[rows[0].value].dtype, cellName: (r, c) => `${rows[r].module}, head ${c}`,
      outside: 'no such head',
      pick: go ? (_, r, c) => go({value: rows[r].value, gradient: true, cell: c}) : null});
    return draw.figure('dL/dscale, layers down, heads across', map.element, draw.legend(scale));
  }

  /**
   * Tables over the offset between query and key, [(2h-1)(2w-1), heads]: SP-SA's prior, the relative position bias.
   * [{value, module, side, heads, prior}]
   */
  draw.offsetTables = function (pass) {
    const found = [];
    for (const step of pass.steps) {
      if (step.op !== 'gather' || step.inputs[0] < 0) continue;
      const made = pass.steps[pass.values[step.inputs[0]].step];
      const value = made && made.op === 'concat' ? made.inputs[0] : step.inputs[0];
      const shape = pass.values[value].shape, side = Math.sqrt(shape[0]);
      if (shape.length !== 2 || !Number.isInteger(side) || side % 2 === 0) continue;
      found.push({value, module: step.module, side, heads: shape[1], prior: /prior/.test(pass.values[value].name)});
    }
    return found;
  };

  // One head's table and its gradient. The bias counts from the key to the query, the prior the other way.
  function tableFigure(pass, table, head, gradient, go) {
    const values = gradient ? pass.gradient(table.value) : pass.value(table.value), half = (table.side - 1) / 2;
    const word = table.prior ? 'Omega' : 'bias', name = gradient ? `dL/d${word}` : word;
    if (!values) return draw.figure(name, draw.noGradient(pass, table.value));
    const centre = table.prior && !gradient ? 1 : 0;
    const scale = draw.scale({centre, limit: draw.limitOf(Float64Array.from(values, (x) => x - centre)), unit: name});
    const flip = table.prior ? 1 : -1, row = (r) => flip > 0 ? r : table.side - 1 - r;
    const map = draw.heatmap({rows: table.side, cols: table.side, values, scale, name,
      at: (r, c) => (row(r) * table.side + row(c)) * table.heads + head,
      dtype: pass.values[table.value].dtype, cell: Math.max(4, Math.floor(210 / table.side)),
      cellName: (r, c) => `key ${c - half} to the right, ${r - half} down`, markCell: true,
      marked: half * table.side + half, pick: go ? (cell) => go({value: table.value, gradient, cell}) : null});
    return draw.figure(`${name}, head ${head}`, map.element,
      draw.legend(scale, draw.countSpecial(values), 'all heads'));
  }

  function tablePanel(pass, tables, go) {
    const element = draw.element('section', {}), state = {table: 0, head: 0};
    const prior = tables[0].prior;
    function build() {
      const table = tables[state.table];
      if (state.head >= table.heads) state.head = 0;
      const heads = Array.from({length: table.heads}, (_, i) => [i, `head ${i}`]);
      element.replaceChildren(
        draw.element('div', {class: 'draw-choices'}, [
          draw.select('layer', tables.map((each, i) => [i, each.module]), state.table,
            (i) => { state.table = Number(i); build(); }),
          draw.select('head', heads, state.head, (i) => { state.head = Number(i); build(); })]),
        draw.element('p', {class: 'draw-sentence', text: prior
          ? 'The prior multiplies the score of a query and a key by Omega of their offset; 1 changes nothing. ' +
            'The query is at the frame in the middle.'
          : 'The bias of their offset is added to the score of a query (framed) and a key.'}),
        draw.element('div', {class: 'draw-row'}, [tableFigure(pass, table, state.head, false, go),
          tableFigure(pass, table, state.head, true, go)]));
    }
    build();
    return {name: prior ? 'prior' : 'bias', element,
      title: prior ? 'Spatial prior by offset (SP-SA)' : 'Relative position bias by offset'};
  }

  /** Whether termPanels() has anything to show: told from the steps alone, without the numbers. */
  draw.hasTerms = (pass) => pass.values.some((value) => value.parameter && /(^|\.)scale$/.test(value.name)) ||
    draw.offsetTables(pass).length > 0 || pass.steps.some((step) => /^shifted_(patches|copies)$/.test(step.op) ||
      step.op === 'content_decay') || Boolean(pass.config && pass.config.attention && pass.config.attention.decay);

  /** Panels of the terms that this model has: [{name, title, element}]. */
  draw.termPanels = function (pass, {go = null} = {}) {
    const tables = draw.offsetTables(pass), priors = tables.filter((table) => table.prior);
    const biases = tables.filter((table) => !table.prior);
    return [temperaturePanel(pass, go), priors.length ? tablePanel(pass, priors, go) : null,
      biases.length ? tablePanel(pass, biases, go) : null, draw.decayPanel(pass, {go}), draw.shiftedPanel(pass, {go})]
      .filter(Boolean);
  };
})(globalThis.tessera = globalThis.tessera || {});
