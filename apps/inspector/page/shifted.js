// Shifted patch tokenization: the picture and its shifted copies, put together again from the tokens.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  // "looks up and left" for the offset (-2, -2): what it shows at a place lies there in the picture.
  function offsetWords(dy, dx) {
    const ways = [dy < 0 ? 'up' : dy > 0 ? 'down' : '', dx < 0 ? 'left' : dx > 0 ? 'right' : ''].filter(Boolean);
    return ways.length ? `looks ${ways.join(' and ')}` : 'as it is';
  }

  // The copies that a step makes, each by its offset (dy, dx) in pixels, in the order of their channels.
  function offsetsOf(step, copies) {
    const flat = step.attributes && step.attributes.offsets;
    return Array.from({length: copies}, (_, i) => flat && flat.length === 2 * copies ? [flat[2 * i], flat[2 * i + 1]]
      : null);
  }

  /** Patches [B, N, C * P * P], flattened as (channel, row, column), back to planes [C, H, W] of one image. */
  draw.unpatched = function (values, image, {tokens, channels, grid, patch}) {
    const side = grid * patch, planes = new Float64Array(channels * side * side), width = channels * patch * patch;
    for (let token = 0; token < tokens; ++token) {
      const top = Math.floor(token / grid) * patch, left = token % grid * patch;
      for (let f = 0; f < width; ++f) {
        const channel = Math.floor(f / (patch * patch)), r = Math.floor(f / patch) % patch, c = f % patch;
        planes[(channel * side + top + r) * side + left + c] = values[(image * tokens + token) * width + f];
      }
    }
    return planes;
  };

  // colour = slope * value + start for each channel, from the unshifted picture; the model's normalisation undone.
  function coloursOf(planes, picture, pixels) {
    return [0, 1, 2].map((channel) => {
      let low = 0, high = 0;
      const x = (i) => planes[channel * pixels + i];
      for (let i = 1; i < pixels; ++i) {
        if (x(i) < x(low)) low = i;
        if (x(i) > x(high)) high = i;
      }
      const at = (i) => picture.rgba[4 * i + channel], span = x(high) - x(low);
      const slope = span > 0 ? (at(high) - at(low)) / span : 0;
      return {slope, start: at(low) - slope * x(low)};
    });
  }

  function copyPicture(planes, copy, side, colours) {
    const pixels = side * side, rgba = new Uint8ClampedArray(4 * pixels);
    for (let i = 0; i < pixels; ++i) {
      for (let c = 0; c < 3; ++c)
        rgba[4 * i + c] = colours[c].slope * planes[(3 * copy + c) * pixels + i] + colours[c].start;
      rgba[4 * i + 3] = 255;
    }
    return {width: side, height: side, rgba};
  }

  // The step that moves the picture: into tokens at once, or as planes that are cut later.
  function shiftedStep(pass) {
    const step = pass.steps.find((each) => /^shifted_(patches|copies)$/.test(each.op) &&
      each.inputs[0] === pass.index('input'));
    if (!step) return null;
    const [, channels, height, width] = step.shapes[0], shape = pass.values[step.output].shape;
    const planes = step.op === 'shifted_copies', tokens = planes ? 1 : shape[1], grid = Math.sqrt(tokens);
    const patch = height / grid, copies = (planes ? shape[1] : shape[2] / (patch * patch)) / channels;
    if (![grid, patch, copies].every(Number.isInteger) || height !== width || channels !== 3) return null;
    return {step, tokens, grid, patch, copies, channels: channels * copies, side: height};
  }

  function sentence({copies}, offsets) {
    const far = offsets.filter(Boolean).map(([dy, dx]) => Math.max(Math.abs(dy), Math.abs(dx)));
    return `Each token is cut from the picture and ${copies - 1} copies of it, each moved by ` +
      `${far.length ? `${Math.max(...far)} pixels` : 'a part of a patch'}. What lies outside the picture is 0, the ` +
      'mean colour. Below each: how much the loss feels it.';
  }

  /** The pictures that SPT sees, and below each how much the loss feels it; null for a model without SPT. */
  draw.shiftedPanel = function (pass, {go = null, size = 150} = {}) {
    const found = shiftedStep(pass);
    if (!found) return null;
    const value = found.step.output, pixels = found.side ** 2, offsets = offsetsOf(found.step, found.copies);
    const names = offsets.map((offset, i) => offset ? offsetWords(...offset) : i ? `copy ${i}` : 'as it is');
    const planes = draw.unpatched(pass.value(value), 0, found), gradient = pass.gradient(value);
    const slopes = gradient && draw.unpatched(gradient, 0, found);
    const colours = pass.picture && pass.picture.width === found.side ? coloursOf(planes, pass.picture, pixels)
      : [0, 1, 2].map(() => ({slope: 64, start: 128}));
    const sums = names.map((_, copy) => slopes && draw.sumOfSizes(slopes, copy * 3 * pixels, 3, pixels));
    const scale = draw.scale({kind: 'sequential', backward: true, limit: draw.limitOf(...sums),
      unit: 'sum over the channels of |dL/dx|'});
    const columns = names.map((name, copy) => {
      const parts = [draw.patchedPicture(copyPicture(planes, copy, found.side, colours),
        found.grid > 1 ? found.grid : 0, size)];
      if (sums[copy]) parts.push(draw.heatmap({rows: found.side, cols: found.side, values: sums[copy], scale,
        cell: Math.max(1, Math.floor(size / found.side)), name: 'sum of |dL/dx|', dtype: 'f64',
        cellName: (r, c) => `${name}, pixel (${r}, ${c})`,
        pick: go && ((at, r, c) => go({value, gradient: true, cell: cellOf(found, copy, r, c)}))}).element);
      else parts.push(draw.missing('No gradient flowed here.'));
      return draw.figure(name, draw.element('div', {class: 'draw-stack'}, parts));
    });
    return {name: 'shifted', title: 'Shifted patch tokenization: the pictures that a patch sees',
      element: draw.element('section', {}, [
        draw.element('p', {class: 'draw-sentence', text: sentence(found, offsets)}),
        draw.element('div', {class: 'draw-row'}, columns),
        sums[0] ? draw.legend(scale, {}, 'the same for all') : null])};
  };

  // The cell of a copy's pixel, its first channel, in [B, N, C * P * P].
  function cellOf({grid, patch, channels}, copy, row, col) {
    const token = Math.floor(row / patch) * grid + Math.floor(col / patch);
    return (token * channels + 3 * copy) * patch * patch + row % patch * patch + col % patch;
  }
})(globalThis.tessera = globalThis.tessera || {});
