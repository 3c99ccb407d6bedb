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

  const usual = 5, all = 17;  // digits of a number in a text; as many as any double has

  /** A number in about five digits, with a true minus sign, for texts; tables show every digit. */
  function short(x, digits = usual) {
    if (Number.isNaN(x)) return 'not a number';
    if (!Number.isFinite(x)) return x < 0 ? '−∞' : '∞';
    const size = Math.abs(x), shown = Number(size.toPrecision(digits));
    const text = x === 0 ? '0' : size >= 1e-3 && size < 1e5 ? String(shown)
      : digits >= all ? size.toExponential() : size.toExponential(digits - 1).replace(/\.?0+e/, 'e');
    return x < 0 ? '−' + text.replace('e-', 'e−') : text.replace('e-', 'e−');
  }

  /** The number that a text of short() says. */
  const said = (text) => text.endsWith('∞') ? (text[0] === '−' ? -Infinity : Infinity)
    : Number(text.replace(/−/g, '-'));

  /** Whether the text of a number is another number, beyond what its type, f32 or f64, can tell apart. */
  function rounds(x, text) {
    const shown = said(text);
    return !Object.is(shown + 0, x + 0) && !(Math.fround(x) === x && Math.fround(shown) === x);
  }

  /** As few digits, five at least, as make f of the numbers shown what f of the numbers is. */
  function enough(numbers, f) {
    const wanted = f(...numbers);
    if (!Number.isFinite(wanted)) return usual;
    for (let digits = usual; digits < all; ++digits) {
      const got = f(...numbers.map((x) => said(short(x, digits))));
      if (Math.abs(got - wanted) <= 1e-3 * Math.abs(wanted)) return digits;
    }
    return all;
  }

  /** A formula with its numbers put in: {text, rounded}. f computes it, words(...) writes it of texts. */
  function put(numbers, f, words) {
    const digits = enough(numbers, f), texts = numbers.map((x) => short(x, digits));
    const inside = texts.map((text, i) => i > 0 && text.startsWith('−') ? `(${text})` : text);
    const text = words(...inside).replace(/\(\((−[^()]*)\)/g, '($1');  // "((−3) − 2)"
    return {text, rounded: texts.some((text, i) => rounds(numbers[i], text))};
  }

  /** "2 · 3 = 6", or with ≈ where a number of it is rounded; what is but the result itself stands alone. */
  function equation({text, rounded}, result) {
    const shown = short(result);
    return text === shown ? text : `${text} ${rounded || rounds(result, shown) ? '≈' : '='} ${shown}`;
  }

  tessera.numbers = {phi, density, size, strides, coordinates, at, short, put, equation};
})(globalThis.tessera = globalThis.tessera || {});
