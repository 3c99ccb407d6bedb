// Any tensor as a drawing: tokens as maps over the patches, feature maps as images, all else as matrices.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  const size = (shape) => shape.reduce((a, b) => a * b, 1);

  // Ways to read a tensor of a shape as planes [rows, cols] beside one another.
  function tokensForm(pass, value) {
    const {shape, name} = pass.values[value];
    const layout = shape.length === 3 ? draw.layout(pass, name) : null;
    if (!layout) return null;
    const all = layout.grid ** 2, prefix = [layout.prefix, 0, 1].find((p) => shape[1] === p + all);
    return prefix === undefined ? null : {kind: 'tokens', grid: layout.grid, prefix, channels: shape[2],
      images: shape[0], at: (image, channel, cell) => (image * shape[1] + prefix + cell) * shape[2] + channel,
      prefixAt: (image, channel, token) => (image * shape[1] + token) * shape[2] + channel};
  }

  function mapForm(pass, value) {
    const {shape, name, step} = pass.values[value];
    if (shape.length !== 4) return null;
    const first = name === 'input' || (shape[2] === shape[3] && shape[1] !== shape[2] && shape[1] <= 4);
    const convolved = step >= 0 && /conv|norm|relu|gelu|silu|pool|swish|resize|upsample/.test(pass.steps[step].op);
    if (first) {
      const [images, channels, rows, cols] = shape;
      return {kind: 'maps', rows, cols, channels, images,
        at: (image, channel, cell) => (image * channels + channel) * rows * cols + cell};
    }
    if (!convolved && shape[1] !== shape[2]) return null;
    const [images, rows, cols, channels] = shape;
    return {kind: 'maps', rows, cols, channels, images,
      at: (image, channel, cell) => (image * rows * cols + cell) * channels + channel};
  }

  /** RMS over the channels of each place: [places] */
  function rmsOverChannels(values, form, image, places, at) {
    const out = new Float64Array(places);
    for (let i = 0; i < places; ++i) {
      let sum = 0;
      for (let c = 0; c < form.channels; ++c) sum += values[at(image, c, i)] ** 2;
      out[i] = Math.sqrt(sum / form.channels);
    }
    return out;
  }

  draw.nameOf = (pass, value, gradient) => gradient ? `dL/d(${pass.values[value].name})` : pass.values[value].name;

  /** The box in the place of a gradient that does not exist, with the reason where it is known. */
  draw.noGradient = function (pass, value) {
    const reason = tessera.zeros && tessera.zeros.ofTensor ? tessera.zeros.ofTensor(pass, value) : null;
    return draw.missing(`No gradient flowed here. That is not the number 0. ${reason || ''}`.trim());
  };

  // One channel, or the RMS over all, on the grid; the class token's number stands beside it. others: arrays that
  // share the scale.
  function planeMap({values, others, dtype, title, form, state, log, pick, pass, gradient}) {
    const rows = form.grid || form.rows, cols = form.grid || form.cols, rms = state.channel < 0;
    const flat = (array) => rms ? rmsOverChannels(array, form, state.image, rows * cols, form.at) : array;
    const prefixes = (array) => Array.from({length: form.prefix || 0}, (_, t) => rms
      ? rmsOverChannels(array, form, state.image, 1, (image, c) => form.prefixAt(image, c, t))[0]
      : array[form.prefixAt(state.image, state.channel, t)]);
    const shown = flat(values), arrays = [values, ...others];
    const limit = draw.limitOf(...arrays.map(flat), ...arrays.map(prefixes));
    const scale = draw.scale({kind: rms ? 'sequential' : 'diverging', backward: gradient, limit, log,
      unit: rms ? 'RMS over the channels' : title});
    const map = draw.heatmap({rows, cols, values: shown, scale, dtype: rms ? 'f64' : dtype, label: title,
      picture: form.grid && state.beneath ? draw.pictureOf(pass, state.image) : null, name: rms ? 'RMS' : title,
      at: (r, c) => rms ? r * cols + c : form.at(state.image, state.channel, r * cols + c),
      cell: Math.max(1, Math.floor(state.size / Math.max(rows, cols))), pick: rms ? null : pick});
    const chips = prefixes(values).map((x, t) =>
      draw.prefixChip(scale, x, form.prefix === 1 ? 'class token' : `token ${t}`, rms ? 'f64' : dtype));
    return draw.figure(title, draw.element('div', {class: 'draw-map'}, [...chips, map.element]),
      draw.legend(scale, draw.countSpecial(shown)));
  }

  /** A token that has no place on the picture: its colour, its words and its number. */
  draw.prefixChip = function (scale, x, words, dtype, open = null) {
    const chip = draw.element('span', {class: 'draw-chip'});
    draw.keepPainted(chip, () => { chip.style.backgroundColor = scale.css(x); });
    return draw.element(open ? 'button' : 'span', {class: 'draw-prefix', type: open ? 'button' : null,
      title: draw.exact(x, dtype), on: open ? {click: open} : {}},
    [chip, draw.element('span', {text: `${words} ${draw.short(x)}`})]);
  };

  /**
   * A tensor as matrices: of its last two axes, one for each index of the axes before; where those are many (a
   * convolution's weight), one matrix of the first axis by all others.
   */
  function matricesOf(shape) {
    const real = shape.length ? shape : [1], leading = real.slice(0, -2), planes = size(leading);
    if (planes > 64) return {rows: real[0], cols: size(real.slice(1)), planes: 1, leading: []};
    return {rows: real.length > 1 ? real[real.length - 2] : 1, cols: real[real.length - 1], planes, leading};
  }

  /** "[0, 3, 5, 2]": the indices of a cell of a shape. */
  draw.indexText = function (shape, cell) {
    const indices = shape.map((n, axis) => Math.floor(cell / size(shape.slice(axis + 1))) % n);
    return draw.shapeText(indices);
  };

  function matrixMap({values, others, dtype, title, shape, state, log, pick}) {
    const {rows, cols} = matricesOf(shape), offset = state.slice * rows * cols;
    const scale = draw.scale({limit: draw.limitOf(values, ...others), unit: title, log});
    const at = (r, c) => offset + r * cols + c;
    const map = draw.heatmap({rows, cols, values, scale, dtype, name: title, at, pick,
      cellName: (r, c) => draw.indexText(shape, at(r, c)),
      cell: Math.max(1, Math.min(60, Math.floor(state.size * 1.8 / Math.max(rows, cols))))});
    return draw.figure(title, draw.element('div', {class: 'draw-scroll'}, [map.element]),
      draw.legend(scale, draw.countSpecial(values), 'over the whole tensor'));
  }

  /**
   * The figure of an array of a value's shape. how: values; gradient: they are one; others: arrays on the same scale;
   * title; state (draw.tensorState); log: of the colours; pick(cell) opens a cell.
   */
  draw.tensorFigure = function (pass, value, how) {
    const {others = [], state, log = false, pick = null} = how;
    const {shape, dtype} = pass.values[value], form = state.as === 'map' ? state.form : null;
    const all = {...how, others: others.filter(Boolean), log, pick, pass, dtype, shape, form};
    return form ? planeMap(all) : matrixMap(all);
  };

  /** How a value is drawn at first, and the choices that change it. */
  draw.tensorState = function (pass, value, {cell = -1, head = -1, size: room = 240} = {}) {
    const {shape} = pass.values[value], form = tokensForm(pass, value) || mapForm(pass, value);
    const {rows, cols, planes} = matricesOf(shape), plane = rows * cols;
    const ofHead = shape.length === 4 && head >= 0 && head < shape[1] ? head : 0;
    return {form, as: form ? 'map' : 'matrix', channel: -1, image: 0, log: true, beneath: false, size: room,
      slice: planes === 1 ? 0 : cell >= 0 ? Math.floor(cell / plane) : ofHead};
  };

  /** The choices of a tensor's state; change(part of the state) is called by each. */
  draw.tensorChoices = function (shape, state, change) {
    const {form} = state;
    const {leading, planes} = matricesOf(shape), list = [];
    const indices = (i) => leading.map((n, axis) => Math.floor(i / size(leading.slice(axis + 1))) % n).join(', ');
    const count = (n, word) => Array.from({length: n}, (_, i) => [i, `${word} ${i}`]);
    if (form) list.push(draw.select('drawn as', [['map', form.kind === 'tokens' ? 'map over patches' : 'images'],
      ['matrix', 'matrix']], state.as, (as) => change({as})));
    if (form && state.as === 'map') {
      list.push(draw.select('channel', [[-1, 'RMS over all'], ...count(form.channels, 'channel')], state.channel,
        (channel) => change({channel: Number(channel)})));
      if (form.images > 1) list.push(draw.select('image', count(form.images, 'image'), state.image,
        (image) => change({image: Number(image)})));
    } else if (planes > 1) {
      const matrices = Array.from({length: planes}, (_, i) => [i, `[${indices(i)}, :, :]`]);
      list.push(draw.select('matrix', matrices, state.slice, (slice) => change({slice: Number(slice)})));
    }
    list.push(draw.select('colours of gradients', [['log', 'log'], ['', 'linear']], state.log ? 'log' : '',
      (log) => change({log: log === 'log'})));
    return draw.element('div', {class: 'draw-choices'}, list);
  };

  /**
   * A value and its gradient as drawings beside each other. go(place) opens a cell; whyNot(gradient) says why one is
   * not there at this time of the pass, '' where it is.
   */
  draw.tensorPanel = function (pass, value, {go = null, cell = -1, head = -1, whyNot = () => ''} = {}) {
    const {shape} = pass.values[value], state = draw.tensorState(pass, value, {cell, head});
    const element = draw.element('div', {class: 'draw-tensor'});
    function one(gradient) {
      const values = gradient ? pass.gradient(value) : pass.value(value), title = draw.nameOf(pass, value, gradient);
      if (!values) return draw.figure(title, draw.noGradient(pass, value));
      if (whyNot(gradient)) return draw.figure(title, draw.missing(whyNot(gradient)));
      return draw.tensorFigure(pass, value, {values, gradient, title, state, log: gradient && state.log,
        pick: go && ((at) => go({value, gradient, cell: at}))});
    }
    function build() {
      element.replaceChildren(draw.tensorChoices(shape, state, (change) => {
        Object.assign(state, change);
        build();
      }), draw.element('div', {class: 'draw-row'}, [one(false), one(true)]));
    }
    build();
    return element;
  };
})(globalThis.tessera = globalThis.tessera || {});
