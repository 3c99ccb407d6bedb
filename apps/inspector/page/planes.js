// A tensor as matrices: its last two axes are rows and columns, the axes before them are chosen.
(function(tessera) {
'use strict';

const {place: places, flow} = tessera;
const element = (...words) => tessera.draw.element(...words);

/** {rows, cols, lead: sizes of the axes before the last two}. */
function sizesOf(shape) {
  const rank = shape.length;
  return {
    rows: rank > 1 ? shape[rank - 2] : 1,
    cols: rank ? shape[rank - 1] : 1,
    lead: shape.slice(0, Math.max(0, rank - 2))
  };
}

const chosen = new WeakMap();  // pass -> value -> the indices that the reader chose

function remembered(pass, i) {
  if (!chosen.has(pass)) chosen.set(pass, new Map());
  return chosen.get(pass).get(i);
}

/**
 * The axis of heads: the third from behind of [B, H, N, N] and of [3, B, H, N, d]; -1 where there is none.
 */
const headAxis = (shape) => shape.length >= 4 ? shape.length - 3 : -1;

// Axes that the tensor of the place's cell has too, counted from behind as broadcasting does, follow that cell.
function follow(pass, i, place, indices) {
  if (place.value < 0 || place.cell < 0) return;
  const from = pass.values[place.value].shape, cell = places.indicesOf(place.cell, from);
  const {shape} = pass.values[i], ahead = from.length - shape.length;
  indices.forEach((_, axis) => {
    const other = axis + ahead, image = axisName(pass, i, axis) === 'image';
    if (other >= 0 && from[other] === shape[axis] && (!image || other === 0)) indices[axis] = cell[other];
  });
}

/**
 * The indices of the axes before the last two at a place: as its cell has them, else as chosen, with the head of
 * the place.
 */
function leadOf(pass, i, place) {
  const {shape} = pass.values[i], {lead} = sizesOf(shape);
  const indices = lead.map((count, axis) => Math.min(count - 1, (remembered(pass, i) || [])[axis] || 0));
  const axis = headAxis(shape);
  if (axis >= 0 && place.head >= 0 && place.head < shape[axis]) indices[axis] = place.head;
  follow(pass, i, place, indices);
  return indices;
}

function choose(pass, i, indices) {
  remembered(pass, i);
  chosen.get(pass).set(i, indices);
}

/** The matrix of a tensor at a place: {rows, cols, offset, lead}. */
function at(pass, i, place) {
  const {shape} = pass.values[i], sizes = sizesOf(shape), lead = leadOf(pass, i, place);
  let matrix = 0;
  sizes.lead.forEach((count, axis) => {
    matrix = matrix * count + lead[axis];
  });
  return {rows: sizes.rows, cols: sizes.cols, offset: matrix * sizes.rows * sizes.cols, lead};
}

/** What an axis is called: batch and head where it is so. */
function axisName(pass, i, axis) {
  const value = pass.values[i], input = pass.index('input');
  if (axis === headAxis(value.shape) && /attn|attention/.test(value.name)) return 'head';
  const batch = input >= 0 ? pass.values[input].shape[0] : -1;
  return axis === 0 && !value.parameter && value.shape[0] === batch ? 'image' : `axis ${axis}`;
}

const read = (pass, i, gradient) => gradient ? pass.gradient(i) : pass.value(i);

// One pixel for each number; where pixels are fewer, the largest number of its part.
function paint(canvas, numbers, plane, limit) {
  const width = Math.max(1, Math.min(plane.cols, 110)), height = Math.max(1, Math.min(plane.rows, 30));
  canvas.width = width;
  canvas.height = height;
  const largest = new Float64Array(width * height);
  for (let r = 0; r < plane.rows; ++r) {
    const y = Math.floor(r * height / plane.rows);
    for (let c = 0; c < plane.cols; ++c) {
      const x = numbers[plane.offset + r * plane.cols + c],
            at = y * width + Math.floor(c * width / plane.cols);
      if (!(Math.abs(x) <= Math.abs(largest[at]))) largest[at] = x;
    }
  }
  const pen = canvas.getContext('2d'), image = pen.createImageData(width, height),
        theme = tessera.draw.theme();
  const scale = tessera.draw.scale({limit, log: true});
  for (let i = 0; i < largest.length; ++i) scale.write(largest[i], image.data, 4 * i, theme);
  pen.putImageData(image, 0, 0);
}

const limits = new WeakMap();

function limitOf(pass, i, gradient) {
  if (!limits.has(pass)) limits.set(pass, new Map());
  const known = limits.get(pass), key = gradient ? -1 - i : i;
  if (!known.has(key)) known.set(key, tessera.draw.limitOf(read(pass, i, gradient)));
  return known.get(key);
}

/** A small drawing of a tensor's matrix at a place, or the words for why there is none. */
function tile(pass, i, gradient, place) {
  const why = flow.whyNot(pass, i, gradient, place.time);
  if (why) {
    const none = gradient && !pass.values[i].hasGradient;
    return element(
        'span', {class: `tile ${none ? 'none' : 'not-yet'}`, title: why, text: none ? 'none' : 'not yet'});
  }
  const numbers = read(pass, i, gradient);
  if (!numbers) return element('span', {class: 'tile', text: '\u2026'});
  if (numbers.length === 1)
    return element(
        'span', {class: 'tile single', text: tessera.draw.exact(numbers[0], pass.values[i].dtype)});
  const canvas = element('canvas', {
    class: 'tile',
    'aria-hidden': 'true',
    title: `from ${tessera.draw.short(-limitOf(pass, i, gradient))} to ${
               tessera.draw.short(limitOf(pass, i, gradient))}, ` +
        'log scale; a pixel is the largest number of its part'
  });
  tessera.draw.keepPainted(
      canvas, () => paint(canvas, numbers, at(pass, i, place), limitOf(pass, i, gradient)));
  return canvas;
}

tessera.planes = {
  sizesOf,
  leadOf,
  choose,
  at,
  axisName,
  headAxis,
  read,
  tile,
  limitOf
};
})(globalThis.tessera = globalThis.tessera || {});
