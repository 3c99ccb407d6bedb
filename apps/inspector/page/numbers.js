// Numbers: places in a tensor, texts of numbers, and functions that JavaScript lacks.
(function (tessera) {
  'use strict';

  const rootPi = Math.sqrt(Math.PI);

  /** erfc(x) for x >= 2, by its continued fraction, evaluated from the far end. */
  function tail(x) {
    let below = x;
    for (let n = 60; n > 0; --n) below = x + n / 2 / below;
    return Math.exp(-x * x) / (rootPi * below);
  }

  /** 1 - erfc(x) for 0 <= x < 2: exp(-x^2) 2 / sqrt(pi) times the sum of 2^n x^(2n + 1) / (1 3 5 ... (2n + 1)). */
  function middle(x) {
    let term = x, sum = x;
    for (let n = 1; term > 1e-18 * sum; ++n) {
      term *= 2 * x * x / (2 * n + 1);
      sum += term;
    }
    return Math.exp(-x * x) * 2 / rootPi * sum;
  }

  const erfc = (x) => x < 0 ? 2 - erfc(-x) : x < 2 ? 1 - middle(x) : tail(x);

  /** The normal distribution Phi(x), accurate to the last bits in both tails, and its density. */
  const phi = (x) => Math.abs(x) < 2 ? (x < 0 ? 1 - middle(-x / Math.SQRT2) : 1 + middle(x / Math.SQRT2)) / 2
    : erfc(-x / Math.SQRT2) / 2;
  const density = (x) => Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI);

  const size = (shape) => shape.reduce((product, n) => product * n, 1);

  /** Row-major strides of a shape. */
  function strides(shape) {
    const steps = new Array(shape.length);
    let step = 1;
    for (let i = shape.length - 1; i >= 0; --i) {
      steps[i] = step;
      step *= shape[i];
    }
    return steps;
  }

  /** The indices of a flat cell: [2, 0, 5]. */
  function coordinates(shape, cell) {
    return strides(shape).map((step, i) => Math.floor(cell / step) % shape[i]);
  }

  /** "[2, 0, 5]"; nothing for a scalar. */
  const at = (shape, cell) => shape.length === 0 ? '' : `[${coordinates(shape, cell).join(', ')}]`;

  /** A number in about five digits, with a true minus sign, for texts; tables show every digit. */
  function short(x) {
    if (Number.isNaN(x)) return 'not a number';
    if (!Number.isFinite(x)) return x < 0 ? '−∞' : '∞';
    const size = Math.abs(x);
    const text = x === 0 ? '0' : size >= 1e-3 && size < 1e5 ? String(Number(size.toPrecision(5)))
      : size.toExponential(3).replace(/\.?0+e/, 'e');
    return x < 0 ? '−' + text.replace('e-', 'e−') : text.replace('e-', 'e−');
  }

  tessera.numbers = {phi, density, size, strides, coordinates, at, short};
})(globalThis.tessera = globalThis.tessera || {});
