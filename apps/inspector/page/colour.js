// From numbers to colours: a diverging scale centred on 0, sequential ones for sizes, and the legend.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  // From 0 outward. Blue and orange differ for all common kinds of colour blindness; lightness grows or falls all
  // the way, so that size is seen in grey too.
  const ramps = {
    light: {
      negative: ['#f7f7f5', '#c6dbef', '#6baed6', '#2171b5', '#08306b'],
      positive: ['#f7f7f5', '#fdd0a2', '#fd8d3c', '#d94801', '#7f2704'],
      forward: ['#f5f9f8', '#bfe0da', '#6fb8ae', '#1f7f79', '#003d3b'],
      backward: ['#f8f7fa', '#cfcbe4', '#9e9ac8', '#6a51a3', '#2f0a66'],
      nan: '#e4007f', infinity: '#00875a', minusInfinity: '#9aa0a8', ink: '#16181d', stripe: '#5c626b',
    },
    dark: {
      negative: ['#191c21', '#173f66', '#2a78b8', '#66b5ee', '#cdeaff'],
      positive: ['#191c21', '#63330d', '#b85a12', '#f39a48', '#ffe0b8'],
      forward: ['#171d1d', '#154643', '#26807a', '#62c4ba', '#d9fbf6'],
      backward: ['#1a1820', '#40306b', '#6f54ad', '#a78fdd', '#efe6ff'],
      nan: '#ff4fae', infinity: '#2fd39a', minusInfinity: '#5b616b', ink: '#eef0f3', stripe: '#2b2f36',
    },
  };

  const parse = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const steps = 256;

  // 256 colours between the stops, as bytes. Between close stops plain interpolation is even enough.
  function tableOf(stops) {
    const bytes = new Uint8Array(3 * steps), colours = stops.map(parse);
    for (let i = 0; i < steps; ++i) {
      const at = i / (steps - 1) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
      for (let c = 0; c < 3; ++c)
        bytes[3 * i + c] = Math.round(colours[low][c] + (at - low) * (colours[low + 1][c] - colours[low][c]));
    }
    return bytes;
  }

  // theme -> name -> bytes; a colour that stands alone is a table of one.
  const tables = {};
  for (const [theme, ramp] of Object.entries(ramps)) {
    tables[theme] = {};
    for (const [name, stops] of Object.entries(ramp))
      tables[theme][name] = Array.isArray(stops) ? tableOf(stops) : Uint8Array.from(parse(stops));
  }

  draw.special = (theme = draw.theme()) => ramps[theme];

  /** The largest finite |x| of all arrays given; 0 for none. */
  draw.limitOf = function (...arrays) {
    let limit = 0;
    for (const values of arrays)
      for (let i = 0; values && i < values.length; ++i) {
        const size = Math.abs(values[i]);
        if (size > limit && size < Infinity) limit = size;
      }
    return limit;
  };

  /**
   * kind 'diverging' (-limit .. limit, 0 in the middle) or 'sequential' (0 .. limit). With log, size is shown by
   * log(1 + 1000 |x| / limit): linear for the smallest thousandth, then by decades. A centre other than 0 is for
   * factors, of which 1 changes nothing. Sizes of gradients (backward) are violet, those of values green-blue.
   */
  draw.scale = function ({kind = 'diverging', limit = 1, log = false, unit = '', centre = 0, backward = false}) {
    const span = limit > 0 ? limit : 1, bend = Math.log1p(1000);
    const height = (x) => {
      const size = Math.min(Math.abs(x) / span, 1);
      return log ? Math.log1p(1000 * size) / bend : size;
    };
    const scale = {kind, limit, log, unit, centre, backward, height};
    /** Bytes of the colour of x, written at `at` of an RGBA array. */
    scale.write = function (x, bytes, at, theme) {
      const names = tables[theme];
      let colour, from = 0;
      if (x - x === 0) {  // finite
        if (kind === 'sequential') colour = backward ? names.backward : names.forward;
        else colour = x < centre ? names.negative : names.positive;
        from = 3 * Math.round(height(x - centre) * (steps - 1));
      } else {
        colour = x > 0 ? names.infinity : x < 0 ? names.minusInfinity : names.nan;
      }
      bytes[at] = colour[from];
      bytes[at + 1] = colour[from + 1];
      bytes[at + 2] = colour[from + 2];
      bytes[at + 3] = 255;
    };
    scale.css = function (x, theme = draw.theme()) {
      const bytes = [0, 0, 0, 0];
      scale.write(x, bytes, 0, theme);
      return `rgb(${bytes[0]}, ${bytes[1]}, ${bytes[2]})`;
    };
    return scale;
  };

  /** How many values are not finite: {nan, infinity, minusInfinity}. */
  draw.countSpecial = function (...arrays) {
    const count = {nan: 0, infinity: 0, minusInfinity: 0};
    for (const values of arrays)
      for (let i = 0; values && i < values.length; ++i) {
        if (Number.isFinite(values[i])) continue;
        ++count[Number.isNaN(values[i]) ? 'nan' : values[i] > 0 ? 'infinity' : 'minusInfinity'];
      }
    return count;
  };

  const barWidth = 180, barHeight = 12;

  function paintBar(canvas, scale) {
    const ratio = globalThis.devicePixelRatio || 1, width = Math.round(barWidth * ratio);
    canvas.width = width;
    canvas.height = 1;
    const image = canvas.getContext('2d').createImageData(width, 1), theme = draw.theme();
    const linear = draw.scale({kind: scale.kind, backward: scale.backward, limit: 1});
    for (let i = 0; i < width; ++i) {
      const at = i / (width - 1);
      linear.write(scale.kind === 'sequential' ? at : 2 * at - 1, image.data, 4 * i, theme);
    }
    canvas.getContext('2d').putImageData(image, 0, 0);
  }

  // Places of the numbers below the bar, from 0 to 1, with what they say.
  function ticks(scale) {
    const limit = scale.limit, sequential = scale.kind === 'sequential';
    const place = (x) => sequential ? scale.height(x) : (1 + Math.sign(x) * scale.height(x)) / 2;
    if (limit === 0) return [[sequential ? 0 : 0.5, draw.short(scale.centre)]];
    const inner = scale.log ? 10 ** Math.floor(Math.log10(limit / 15)) : limit / 2;
    const values = sequential ? [0, inner, limit] : scale.log ? [-limit, -inner, 0, inner, limit] : [-limit, 0, limit];
    return values.map((x) => [place(x), draw.short(scale.centre + x, scale.log && Math.abs(x) === inner ? 1 : 3)]);
  }

  const names = {nan: 'not a number', infinity: '\u221e', minusInfinity: '\u2212\u221e'};

  function swatch(kind, count) {
    const box = draw.element('span', {class: `draw-swatch draw-swatch-${kind}`});
    draw.keepPainted(box, () => { box.style.backgroundColor = draw.special()[kind]; });
    return draw.element('span', {class: 'draw-special'}, [box, `${names[kind]}: ${count}`]);
  }

  /** The bar with its numbers, the unit, and a word for each kind of number that is none. Never hidden. */
  draw.legend = function (scale, special = {}, note = '') {
    const canvas = draw.element('canvas', {class: 'draw-bar', 'aria-hidden': 'true'});
    canvas.style.height = `${barHeight}px`;
    draw.keepPainted(canvas, () => paintBar(canvas, scale));
    const numbers = ticks(scale).map(([at, text]) =>
      draw.element('span', {class: 'draw-tick', text, style: {left: `${100 * at}%`},
        data: {side: at < 0.01 ? 'first' : at > 0.99 ? 'last' : at === 0.5 ? 'middle' : 'inner'}}));
    const words = [scale.unit, scale.log ? 'log scale beyond 1/1000 of the largest' : '', note];
    const bar = draw.element('div', {class: 'draw-bar-box', data: {log: scale.log ? 'yes' : 'no'}},
      [canvas, draw.element('div', {class: 'draw-ticks'}, numbers)]);
    return draw.element('div', {class: 'draw-legend', role: 'img',
      'aria-label': `Colours from ${ticks(scale).map((tick) => tick[1]).join(' to ')} ${scale.unit}`}, [
      bar,
      draw.element('div', {class: 'draw-unit'}, [words.filter(Boolean).join(' \u00b7 ')]),
      ...Object.keys(names).filter((kind) => special[kind] > 0).map((kind) => swatch(kind, special[kind])),
    ]);
  };
})(globalThis.tessera = globalThis.tessera || {});
