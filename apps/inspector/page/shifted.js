// Shifted patch tokenization: the picture and its shifted copies, put together again from the tokens.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  const cardinal = ['looks left', 'looks right', 'looks up', 'looks down'];
  const diagonal = ['looks up and left', 'looks up and right', 'looks down and left', 'looks down and right'];
  const directions = {cardinal, diagonal, all: [...cardinal, ...diagonal]};

  /** The names of the copies, in the order of their channels; numbers where the config does not say. */
  function copyNames(pass, copies) {
    const tokenizer = (pass.config && pass.config.tokenizer) || {};
    const names = directions[tokenizer.directions || 'diagonal'] || [];
    return ['as it is', ...Array.from({length: copies - 1},
      (_, i) => names.length === copies - 1 ? names[i] : `copy ${i + 1}`)];
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

  // Where the planes are: the step that cuts the picture and its copies into patches.
  function shiftedStep(pass) {
    const step = pass.steps.find((each) => each.op === 'shifted_patches' && each.inputs[0] === pass.index('input'));
    if (!step) return null;
    const [, channels, height, width] = step.shapes[0], [images, tokens, features] = pass.values[step.output].shape;
    const grid = Math.sqrt(tokens), patch = height / grid;
    if (!Number.isInteger(grid) || !Number.isInteger(patch) || height !== width || channels !== 3) return null;
    const copies = features / (channels * patch * patch);
    if (!Number.isInteger(copies)) return null;
    return {step, images, tokens, grid, patch, copies, channels: channels * copies, side: height};
  }

  // How far the copies are moved: floor(patch * ratio) pixels, where the config says.
  function shiftWords(pass, {patch}) {
    const {ratio} = (pass.config && pass.config.tokenizer) || {};
    return ratio === undefined ? 'a part of a patch' : `${Math.floor(patch * ratio)} pixels`;
  }

  /** The pictures that SPT sees, and below each how much the loss feels it; null for a model without SPT. */
  draw.shiftedPanel = function (pass, {go = null, size = 150} = {}) {
    const found = shiftedStep(pass);
    if (!found) return null;
    const value = found.step.output, pixels = found.side ** 2, names = copyNames(pass, found.copies);
    const planes = draw.unpatched(pass.value(value), 0, found), gradient = pass.gradient(value);
    const slopes = gradient && draw.unpatched(gradient, 0, found);
    const colours = pass.picture && pass.picture.width === found.side ? coloursOf(planes, pass.picture, pixels)
      : [0, 1, 2].map(() => ({slope: 64, start: 128}));
    const sums = names.map((_, copy) => slopes && draw.sumOfSizes(slopes, copy * 3 * pixels, 3, pixels));
    const scale = draw.scale({kind: 'sequential', backward: true, limit: draw.limitOf(...sums),
      unit: 'sum over the channels of |dL/dx|'});
    const columns = names.map((name, copy) => {
      const parts = [draw.patchedPicture(copyPicture(planes, copy, found.side, colours), found.grid, size)];
      if (sums[copy]) parts.push(draw.heatmap({rows: found.side, cols: found.side, values: sums[copy], scale,
        cell: Math.max(1, Math.floor(size / found.side)), name: 'sum of |dL/dx|', dtype: 'f64',
        cellName: (r, c) => `${name}, pixel (${r}, ${c})`,
        pick: go && ((at, r, c) => go({value, gradient: true, cell: cellOf(found, copy, r, c)}))}).element);
      else parts.push(draw.missing('No gradient flowed here.'));
      return draw.figure(name, draw.element('div', {class: 'draw-stack'}, parts));
    });
    return {name: 'shifted', title: 'Shifted patch tokenization: the pictures that a patch sees',
      element: draw.element('section', {}, [
        draw.element('p', {class: 'draw-sentence', text: 'Each token is cut from the picture and ' +
          `${found.copies - 1} copies of it, each moved by ${shiftWords(pass, found)}. What lies outside the picture ` +
          'is 0, the mean colour. Below each: how much the loss feels it.'}),
        draw.element('div', {class: 'draw-row'}, columns),
        sums[0] ? draw.legend(scale, {}, 'the same for all') : null])};
  };

  // The cell of a copy's pixel, its first channel, in [B, N, C * P * P].
  function cellOf({grid, patch, channels}, copy, row, col) {
    const token = Math.floor(row / patch) * grid + Math.floor(col / patch);
    return (token * channels + 3 * copy) * patch * patch + row % patch * patch + col % patch;
  }
})(globalThis.tessera = globalThis.tessera || {});
