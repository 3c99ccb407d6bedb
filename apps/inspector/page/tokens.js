// Where the tokens of a model lie on its picture, and where the attentions of a pass are.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  const side = (grid, step) => Math.floor((grid - 1) / step) + 1;
  const stageOf = (module) => Number((module.match(/^(?:layers|transformers)\.(\d+)/) || [])[1] || 0);
  const blockOf = (module) => Number((module.match(/blocks\.(\d+)/) || [])[1] || 0);
  const repeat = (count, step, from) => {
    let grid = from;
    for (let i = 0; i < count; ++i) grid = step(grid);
    return grid;
  };

  // Each gives {grid: tokens a side, prefix: tokens before the grid, overlap: a token sees more than its square}.
  const layouts = {
    vit: (c) => ({grid: c.image_size / c.tokenizer.patch_size, prefix: 1}),
    cait: (c) => ({grid: c.image_size / c.tokenizer.patch_size, prefix: 0}),
    dit: (c) => ({grid: c.image_size / c.tokenizer.patch_size, prefix: 0}),
    pit: (c, module) => ({prefix: 1,
      grid: repeat(stageOf(module), (g) => Math.floor((g + 1) / 2), c.image_size / c.tokenizer.patch_size)}),
    swin: (c, module) => ({prefix: 0,
      grid: repeat(stageOf(module), (g) => Math.floor(g / 2), c.image_size / c.tokenizer.patch_size)}),
    t2t(c, module) {
      const inside = module.match(/^tokens_to_token\.attention(\d+)/);
      const splits = inside ? Number(inside[1]) : c.tokenizer.splits;
      return {grid: repeat(splits, (g) => Math.floor((g + 1) / 2), c.image_size), prefix: inside ? 0 : 1,
        overlap: true};
    },
    lvvit: (c, module) => ({grid: c.image_size / c.tokenizer.patch_size, overlap: true,
      prefix: blockOf(module) < (c.sp_layers || 0) ? 0 : 1}),
    rmt(c, module) {
      const strides = c.tokenizer.strides || [2, 1, 2, 1];
      const first = strides.reduce((grid, step) => side(grid, step), c.image_size);
      return {grid: repeat(stageOf(module), (g) => side(g, 2), first), prefix: 0, overlap: true};
    },
  };
  layouts.sdt = layouts.rmt;

  /** The tokens of a module: {grid, prefix, overlap, config}, or null where the architecture is not known. */
  draw.layout = function (pass, module) {
    let config = pass.config, path = module;
    if (config && config.arch === 'segment') {
      if (!path.startsWith('backbone')) return null;
      config = config.backbone;
      path = path.replace(/^backbone\.?/, '');
    }
    if (!config || !layouts[config.arch]) return null;
    const layout = layouts[config.arch](config, path);
    return Number.isInteger(layout.grid) && layout.grid > 0 ? {...layout, config, path} : null;
  };

  // Swin: windows of a picture row by row, moved by half a window in every second block; `cells` of a window are
  // the places on the grid of its tokens.
  function windows(layout) {
    const grid = layout.grid, window = Math.min(layout.config.window || 4, grid);
    const shift = blockOf(layout.path) % 2 === 1 && grid > window ? Math.floor(window / 2) : 0;
    const across = grid / window, groups = [];
    for (let g = 0; g < across * across; ++g) {
      const top = Math.floor(g / across) * window, left = g % across * window, cells = [];
      for (let t = 0; t < window * window; ++t) {
        const row = (top + Math.floor(t / window) + shift) % grid;
        cells.push(row * grid + (left + t % window + shift) % grid);
      }
      groups.push(cells);
    }
    return {groups, shift, window};
  }

  function lines(grid, down) {
    const along = Array.from({length: grid}, (_, i) => i);
    return along.map((line) => along.map((i) => down ? i * grid + line : line * grid + i));
  }

  // Which tokens attend together, as places on the grid; null if the shapes are not those of the layout.
  function grouping(layout, a, order) {
    const {grid, prefix} = layout, all = grid * grid;
    if (a.groups === 1 && a.keys === prefix + all)
      return {prefix, cells: [Array.from({length: all}, (_, i) => i)], kind: 'all'};
    if (prefix > 0) return null;
    if (layout.config.arch === 'swin') {
      const w = windows(layout);
      return w.groups.length === a.groups && w.window ** 2 === a.keys
        ? {prefix, cells: w.groups, kind: 'window', shift: w.shift, window: w.window} : null;
    }
    if (a.groups === grid && a.keys === grid)
      return {prefix, cells: lines(grid, order === 1), kind: order === 1 ? 'column' : 'row'};
    return null;
  }

  function attentionOf(pass, step, batch, order) {
    const shape = step.shapes[0], rank = shape.length;
    if (rank < 3) return null;
    const heads = rank >= 4 ? shape[rank - 3] : 1;
    const together = shape.slice(0, rank >= 4 ? rank - 3 : rank - 2).reduce((a, b) => a * b, 1);
    const queries = shape[rank - 2], keys = shape[rank - 1];
    if (together % batch !== 0 || keys < 2) return null;
    const a = {step: step.index, scores: step.inputs[0], probabilities: step.output, batch, heads, queries, keys,
      groups: together / batch, module: step.module};
    a.layout = draw.layout(pass, step.module);
    const placed = a.layout && grouping(a.layout, a, order);
    Object.assign(a, placed || {prefix: 0, cells: null, kind: a.groups > 1 ? 'group' : 'all'});
    a.classQuery = queries === 1 && keys > 1;
    a.at = (image, group, head, query, key) =>
      (((image * a.groups + group) * heads + head) * queries + query) * keys + key;
    a.offset = (image, group, head) => a.at(image, group, head, 0, 0);
    return a;
  }

  const known = new WeakMap();

  /** All attentions of a pass in their order: every softmax whose last two axes are queries and keys. */
  draw.attentions = function (pass) {
    if (known.has(pass)) return known.get(pass);
    const input = pass.index('input'), found = [], times = new Map();
    const batch = input >= 0 ? pass.values[input].shape[0] || 1 : 1;
    for (const step of pass.steps) {
      if (step.op !== 'softmax') continue;
      const order = times.get(step.module) || 0, a = attentionOf(pass, step, batch, order);
      times.set(step.module, order + 1);
      if (!a) continue;
      a.key = order ? `${a.module}#${order + 1}` : a.module;
      a.title = a.kind === 'row' || a.kind === 'column' ? `${a.module}, within ${a.kind}s` : a.module;
      found.push(a);
    }
    known.set(pass, found);
    return found;
  };

  /** The attentions of a module and below it: of "blocks.5" that of block 5. */
  draw.attentionsBelow = (pass, module) => draw.attentions(pass).filter((a) =>
    module === '' || a.module === module || a.module.startsWith(`${module}.`) || module.startsWith(`${a.module}.`));

  /** A token by its words: "class token", "patch (row 3, column 5)", or its number where no place is known. */
  draw.tokenName = function (a, group, token) {
    if (token < a.prefix) return a.prefix === 1 ? 'class token' : `prefix token ${token}`;
    if (!a.cells) return `token ${token}`;
    const cell = a.cells[group][token - a.prefix], grid = a.layout.grid;
    return `patch (${Math.floor(cell / grid)}, ${cell % grid})`;
  };

  draw.queryName = (a, group, query) => a.classQuery ? 'class token' : draw.tokenName(a, group, query);

  /** The group and the token of a place on the grid. */
  draw.tokenAt = function (a, cell) {
    for (let group = 0; group < a.groups; ++group) {
      const token = a.cells[group].indexOf(cell);
      if (token >= 0) return {group, token: token + a.prefix};
    }
    return null;
  };

  /** One sentence on how the tokens lie on the picture; what is not known is said. */
  draw.layoutSentence = function (a) {
    if (!a.cells)
      return 'Where these tokens lie on the picture is not known for this graph: the matrices are shown alone.';
    const grid = a.layout.grid, sentences = [`The tokens form a grid of ${grid} by ${grid} patches.`];
    if (a.prefix) sentences.push('The class token has no place on the picture and is drawn beside it.');
    if (a.classQuery) sentences.push('The class token is the only query; the keys are the patches alone.');
    if (a.kind === 'window') sentences.push(`Attention stays inside windows of ${a.window} by ${a.window}` +
      (a.shift ? `, moved by ${a.shift} patches right and down; a window at the border holds patches from opposite ` +
        'sides, whose pairs get -100 added.' : '.'));
    if (a.kind === 'row' || a.kind === 'column') sentences.push(`Attention stays inside one ${a.kind} of the grid.`);
    if (a.layout.overlap) sentences.push('A token sees more of the picture than the square that it is drawn on.');
    return sentences.join(' ');
  };
})(globalThis.tessera = globalThis.tessera || {});
