// Ops that move numbers: each output cell is one input cell, or 0.
(function (tessera) {
  'use strict';

  const {size, strides} = tessera.numbers, {define, kinds, stretched} = tessera.ops;

  /** map[out] = place(indices of out), for every cell of a shape. */
  function mapOver(shape, place) {
    const map = new Int32Array(size(shape)), index = new Array(shape.length).fill(0);
    for (let o = 0; o < map.length; ++o) {
      map[o] = place(index, o);
      for (let i = shape.length - 1; i >= 0; --i) {
        if (++index[i] < shape[i]) break;
        index[i] = 0;
      }
    }
    return map;
  }

  const dot = (index, steps) => index.reduce((sum, n, i) => sum + n * steps[i], 0);

  define('broadcast_to', kinds.moves((s) => stretched(s.shapes[0], s.shape)));
  define('cast', kinds.moves((s) => Int32Array.from({length: s.count}, (_, i) => i)));

  define('permute', kinds.moves((s) => {
    const steps = strides(s.shapes[0]), order = s.attribute('order');
    const from = s.shapes[0], shape = order.map((axis) => from[axis]);
    return mapOver(shape, (index) => order.reduce((sum, axis, i) => sum + index[i] * steps[axis], 0));
  }));

  define('concat', kinds.moves((s, k) => {
    const axis = s.attribute('axis'), steps = strides(s.shapes[k]), count = s.shapes[k][axis];
    let first = 0;
    for (let i = 0; i < k; ++i) first += s.shapes[i][axis];
    return mapOver(s.shape, (index) => index[axis] < first || index[axis] >= first + count ? -1
      : dot(index, steps) - first * steps[axis]);
  }));

  define('slice', kinds.moves((s) => {
    const axis = s.attribute('axis'), first = s.attribute('first'), steps = strides(s.shapes[0]);
    const shape = s.shapes[0].map((n, i) => i === axis ? s.attribute('count') : n);
    return mapOver(shape, (index) => dot(index, steps) + first * steps[axis]);
  }));

  define('take', kinds.moves((s) => {
    const axis = s.attribute('axis'), chosen = s.attribute('index'), steps = strides(s.shapes[0]);
    const shape = s.shapes[0].map((n, i) => i === axis ? chosen.length : n);
    return mapOver(shape, (index) => dot(index, steps) + (chosen[index[axis]] - index[axis]) * steps[axis]);
  }));

  define('gather', kinds.moves((s) => {
    const chosen = s.attribute('index'), width = size(s.shapes[0].slice(1));
    return Int32Array.from({length: s.count}, (_, o) => chosen[Math.floor(o / width)] * width + o % width);
  }));

  /** The cell (b, c, i, j) of maps [B, C, H, W], -1 outside. */
  function pixel([, channels, height, width], b, c, i, j) {
    if (i < 0 || j < 0 || i >= height || j >= width) return -1;
    return ((b * channels + c) * height + i) * width + j;
  }

  function patchMap(s, offsets) {
    const from = s.shapes[0], [images, channels, height, width] = from, cut = s.attribute('size');
    const high = height / cut, wide = width / cut, copies = offsets.length / 2;
    return mapOver([images, high, wide, copies, channels, cut, cut], ([b, i, j, d, c, u, v]) =>
      pixel(from, b, c, i * cut + u + offsets[2 * d], j * cut + v + offsets[2 * d + 1]));
  }

  define('patches', kinds.moves((s) => patchMap(s, [0, 0])));
  define('shifted_patches', kinds.moves((s) => patchMap(s, s.attribute('offsets'))));
  define('shifted_copies', kinds.moves((s) => {
    const from = s.shapes[0], [images, channels, height, width] = from, offsets = s.attribute('offsets');
    return mapOver([images, offsets.length / 2, channels, height, width], ([b, d, c, i, j]) =>
      pixel(from, b, c, i + offsets[2 * d], j + offsets[2 * d + 1]));
  }));

  define('unfold', kinds.moves((s) => {
    const [images, height, width, channels] = s.shapes[0], [kh, kw] = s.attribute('kernel');
    const step = s.attribute('stride'), padding = s.attribute('padding');
    const high = Math.floor((height + 2 * padding - kh) / step) + 1;
    const wide = Math.floor((width + 2 * padding - kw) / step) + 1;
    return mapOver([images, high, wide, channels, kh, kw], ([b, i, j, c, u, v]) => {
      const y = i * step + u - padding, x = j * step + v - padding;
      return y < 0 || x < 0 || y >= height || x >= width ? -1 : ((b * height + y) * width + x) * channels + c;
    });
  }));
})(globalThis.tessera = globalThis.tessera || {});
