// Ops on single elements and on pairs of them, sums over axes, masks and dropped paths.
(function (tessera) {
  'use strict';

  const {phi, density, size} = tessera.numbers, {define, kinds} = tessera.ops;

  const number = (label, value) => [{label, value, place: null}];
  const one = () => 1;
  define('add', kinds.pairs((a, b) => a + b, [one, one], () => [], (a, b) => [[a], [b]]));
  define('subtract', kinds.pairs((a, b) => a - b, [one, () => -1], (s, k, other, slope) =>
    k === 1 ? number('−1', slope) : [], (a, b) => [[a], [...number('−1', -1), b]]));
  define('multiply', kinds.pairs((a, b) => a * b, [(a, b) => b, (a) => a], (s, k, other) =>
    [s.factor(k === 0 ? 'b' : 'a', 1 - k, other)], (a, b) => [[a, b]]));
  const inverse = (b) => ({label: '1 / b', value: 1 / b.value, place: b.place});
  define('divide', kinds.pairs((a, b) => a / b, [(a, b) => 1 / b, (a, b, y) => -y / b], (s, k, other, slope) =>
    number(k === 0 ? '1 / b' : '−y / b', slope), (a, b) => [[a, inverse(b)]]));

  const sigmoid = (x) => x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x));
  const turn = Math.sqrt(2 / Math.PI), cubic = 0.044715;
  const inner = (x) => Math.tanh(turn * (x + cubic * x * x * x));

  const unary = (name, f, slope, words) => define(name, kinds.elements(f, slope, words));
  unary('scale', (x, s) => s.attribute('c') * x, (x, y, s) => s.attribute('c'), 'c');
  unary('add_scalar', (x, s) => x + s.attribute('c'), one, '1');
  unary('exp', Math.exp, (x, y) => y, 'y');
  unary('log', Math.log, (x) => 1 / x, '1 / x');
  unary('sqrt', Math.sqrt, (x, y) => 1 / (2 * y), '1 / (2 y)');
  unary('square', (x) => x * x, (x) => 2 * x, '2 x');
  unary('absolute', Math.abs, Math.sign, 'sign(x)');
  unary('relu', (x) => x > 0 ? x : 0, (x) => x > 0 ? 1 : 0, 'x > 0');
  unary('gelu', (x) => x * phi(x), (x) => phi(x) + x * density(x), 'Φ(x) + x φ(x)');
  unary('gelu_tanh', (x) => 0.5 * x * (1 + inner(x)), (x) => {
    const t = inner(x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * turn * (1 + 3 * cubic * x * x);
  }, 'gelu′(x)');
  unary('silu', (x) => x * sigmoid(x), (x) => sigmoid(x) * (1 + x * (1 - sigmoid(x))), 'σ(x) (1 + x (1 − σ(x)))');
  unary('sigmoid', sigmoid, (x, y) => y * (1 - y), 'y (1 − y)');
  unary('log_sigmoid', (x) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x))), (x) => 1 - sigmoid(x), '1 − σ(x)');
  unary('tanh', Math.tanh, (x, y) => 1 - y * y, '1 − y²');

  /** For each input cell, the output cell that it is summed into. */
  const foldOf = (s) => s.once('fold', () => {
    const axes = s.attribute('axes'), kept = s.shapes[0].map((n, i) => axes.includes(i) ? 1 : n);
    return tessera.ops.stretched(kept, s.shapes[0]);
  });

  function folding(factorOf, words) {
    return {
      forward(s) {
        const x = s.x(0), fold = foldOf(s), y = new Float64Array(s.count), factor = factorOf(s);
        for (let i = 0; i < fold.length; ++i) y[fold[i]] += x[i];
        return y.map((sum) => sum * factor);
      },
      backward(s) {
        const dy = s.dy, factor = factorOf(s);
        return Float64Array.from(foldOf(s), (o) => dy[o] * factor);
      },
      uses: (s, k, cell) => [{out: foldOf(s)[cell], slope: factorOf(s), factors: words(factorOf(s))}],
      sources(s, cell) {
        const fold = foldOf(s), terms = [], factor = factorOf(s);
        for (let i = fold.indexOf(cell); i >= 0; i = fold.indexOf(cell, i + 1))
          terms.push({value: factor * s.x(0)[i], factors: [s.factor('x', 0, i), ...words(factor)]});
        return terms;
      },
    };
  }
  define('sum', folding(one, () => []));
  define('mean', folding((s) => s.count / size(s.shapes[0]), (factor) => number('1 / count', factor)));

  /** For each output cell, the input cell that is the first of the largest. */
  const largest = (s) => s.once('largest', () => {
    const axis = s.attribute('axis'), shape = s.shapes[0], x = s.x(0);
    const count = shape[axis], inside = size(shape.slice(axis + 1));
    return Int32Array.from({length: s.count}, (_, o) => {
      const first = Math.floor(o / inside) * count * inside + o % inside;
      let best = first;
      for (let i = 1; i < count; ++i) if (x[first + i * inside] > x[best]) best = first + i * inside;
      return best;
    });
  });
  define('max', kinds.moves(largest));

  define('mask_diagonal', {
    forward(s) {
      const n = s.shape[s.shape.length - 1], y = Float64Array.from(s.x(0));
      const value = s.attribute('value');
      for (let i = 0; i < y.length; i += n * n) for (let j = 0; j < n; ++j) y[i + j * (n + 1)] = value;
      return y;
    },
    backward(s) {
      const n = s.shape[s.shape.length - 1], dx = Float64Array.from(s.dy);
      for (let i = 0; i < dx.length; i += n * n) for (let j = 0; j < n; ++j) dx[i + j * (n + 1)] = 0;
      return dx;
    },
    masks: (s, cell) => cell % (s.shape[s.shape.length - 1] ** 2) % (s.shape[s.shape.length - 1] + 1) === 0,
    uses(s, k, cell) { return this.masks(s, cell) ? [] : [{out: cell, slope: 1, factors: []}]; },
    sources(s, cell) {
      return this.masks(s, cell) ? [] : [{value: s.x(0)[cell], factors: [s.factor('x', 0, cell)]}];
    },
  });

  /** m / (1 - p) of an element, or of the element's image. */
  const dropped = (s, cell) => {
    const factor = s.attribute('factor');
    return factor.length === s.count ? factor[cell] : factor[Math.floor(cell / (s.count / s.shape[0]))];
  };
  define('dropout', {
    forward: (s) => Float64Array.from(s.x(0), (x, i) => x * dropped(s, i)),
    backward: (s) => Float64Array.from(s.dy, (dy, i) => dy * dropped(s, i)),
    uses: (s, k, cell) => [{out: cell, slope: dropped(s, cell), factors: number('m / (1 − p)', dropped(s, cell))}],
    sources: (s, cell) => [{value: s.y[cell],
      factors: [s.factor('x', 0, cell), ...number('m / (1 − p)', dropped(s, cell))]}],
  });
  define('drop_path', {
    forward: (s) => Float64Array.from(s.x(0), (x, i) => x + s.x(1)[i] * dropped(s, i)),
    backward: (s, k) => Float64Array.from(s.dy, (dy, i) => k === 0 ? dy : dy * dropped(s, i)),
    uses(s, k, cell) {
      const slope = k === 0 ? 1 : dropped(s, cell);
      return [{out: cell, slope, factors: k === 0 || slope === 1 ? [] : number('m / (1 − p)', slope)}];
    },
    sources(s, cell) {
      const by = dropped(s, cell), branch = s.factor('f', 1, cell);
      return [{value: s.x(0)[cell], factors: [s.factor('x', 0, cell)]},
        {value: s.x(1)[cell] * by, factors: by === 1 ? [branch] : [branch, ...number('m / (1 − p)', by)]}];
    },
  });
})(globalThis.tessera = globalThis.tessera || {});
