// Ops that sum products: matrix products, linear maps, convolutions, resampling and rotations.
(function (tessera) {
  'use strict';

  const {size} = tessera.numbers, {define} = tessera.ops, {activated} = tessera.ops.kinds;

  /** y[c, i, j] = sum over k of a[at(c, i, k)] b[bt(c, k, j)]: the sizes and steps of a product of matrices. */
  function matmulPlan(s) {
    return s.once('plan', () => {
      const [sa, sb] = s.shapes, turnA = s.attribute('transpose_a') > 0, turnB = s.attribute('transpose_b') > 0;
      const last = (shape, i) => shape[shape.length - i];
      const m = last(sa, turnA ? 1 : 2), k = last(sa, turnA ? 2 : 1), n = last(sb, turnB ? 2 : 1);
      const count = size(s.shape) / (m * n), stepA = size(sa) > m * k ? m * k : 0, stepB = size(sb) > k * n ? k * n : 0;
      return {m, k, n, count, stepA, stepB, ai: turnA ? 1 : k, ak: turnA ? m : 1, bk: turnB ? 1 : n, bj: turnB ? k : 1};
    });
  }

  const matmulFormulas = {
    'a b': 'da = dy b^T; db = a^T dy',
    'a b^T': 'da = dy b; db = dy^T a',
    'a^T b': 'da = b dy^T; db = a dy',
    'a^T b^T': 'da = b^T dy^T; db = dy^T a^T',
  };

  define('matmul', {
    formulas({attributes}) {
      const product = `a${attributes.transpose_a > 0 ? '^T' : ''} b${attributes.transpose_b > 0 ? '^T' : ''}`;
      return {forward: `y = ${product}, batched over leading axes`, backward: matmulFormulas[product]};
    },
    forward(s) {
      const p = matmulPlan(s), a = s.x(0), b = s.x(1), y = new Float64Array(s.count);
      for (let c = 0, o = 0; c < p.count; ++c)
        for (let i = 0; i < p.m; ++i, o += p.n)
          for (let k = 0; k < p.k; ++k) {
            const left = a[c * p.stepA + i * p.ai + k * p.ak];
            for (let j = 0, from = c * p.stepB + k * p.bk; j < p.n; ++j, from += p.bj) y[o + j] += left * b[from];
          }
      return y;
    },
    backward(s, which) {
      const p = matmulPlan(s), other = s.x(1 - which), dy = s.dy, dx = new Float64Array(size(s.shapes[which]));
      for (let c = 0, o = 0; c < p.count; ++c)
        for (let i = 0; i < p.m; ++i)
          for (let j = 0; j < p.n; ++j, ++o) {
            const d = dy[o];
            let a = c * p.stepA + i * p.ai, b = c * p.stepB + j * p.bj;
            if (which === 0) for (let k = 0; k < p.k; ++k, a += p.ak, b += p.bk) dx[a] += d * other[b];
            else for (let k = 0; k < p.k; ++k, a += p.ak, b += p.bk) dx[b] += d * other[a];
          }
      return dx;
    },
    uses(s, which, cell) {
      const p = matmulPlan(s), used = [], step = which === 0 ? p.stepA : p.stepB;
      const one = which === 0 ? p.m * p.k : p.k * p.n, matrix = Math.floor(cell / one), inside = cell % one;
      const rowMajor = which === 0 ? p.ak === 1 : p.bj === 1;
      const wide = which === 0 ? (rowMajor ? p.k : p.m) : (rowMajor ? p.n : p.k);
      const first = Math.floor(inside / wide), second = inside % wide;
      for (let c = step ? matrix : 0; c < (step ? matrix + 1 : p.count); ++c) {
        if (which === 0) {
          const [i, k] = rowMajor ? [first, second] : [second, first];
          for (let j = 0; j < p.n; ++j) {
            const b = c * p.stepB + k * p.bk + j * p.bj;
            used.push({out: (c * p.m + i) * p.n + j, slope: s.x(1)[b], factors: [s.factor('b', 1, b)]});
          }
        } else {
          const [k, j] = rowMajor ? [first, second] : [second, first];
          for (let i = 0; i < p.m; ++i) {
            const a = c * p.stepA + i * p.ai + k * p.ak;
            used.push({out: (c * p.m + i) * p.n + j, slope: s.x(0)[a], factors: [s.factor('a', 0, a)]});
          }
        }
      }
      return used;
    },
    sources(s, cell) {
      const p = matmulPlan(s), c = Math.floor(cell / (p.m * p.n)), i = Math.floor(cell / p.n) % p.m, j = cell % p.n;
      return Array.from({length: p.k}, (_, k) => {
        const a = c * p.stepA + i * p.ai + k * p.ak, b = c * p.stepB + k * p.bk + j * p.bj;
        return {value: s.x(0)[a] * s.x(1)[b], factors: [s.factor('a', 0, a), s.factor('b', 1, b)]};
      });
    },
  });

  define('linear', activated({
    forward(s) {
      const [outputs, inputs] = s.shapes[1], rows = s.count / outputs, x = s.x(0), w = s.x(1);
      const y = new Float64Array(s.count);
      for (let r = 0, o = 0; r < rows; ++r)
        for (let j = 0; j < outputs; ++j, ++o) {
          let sum = 0;
          for (let k = 0, a = r * inputs, b = j * inputs; k < inputs; ++k) sum += x[a + k] * w[b + k];
          y[o] = s.has(2) ? sum + s.x(2)[j] : sum;
        }
      return y;
    },
    backward(s, which) {
      const [outputs, inputs] = s.shapes[1], rows = s.count / outputs, dy = s.dy;
      const dx = new Float64Array(size(s.shapes[which]));
      if (which === 2) {
        for (let o = 0; o < dy.length; ++o) dx[o % outputs] += dy[o];
        return dx;
      }
      const other = s.x(1 - which);
      for (let r = 0, o = 0; r < rows; ++r)
        for (let j = 0; j < outputs; ++j, ++o) {
          const d = dy[o], to = (which === 0 ? r : j) * inputs, from = (which === 0 ? j : r) * inputs;
          if (d !== 0) for (let k = 0; k < inputs; ++k) dx[to + k] += d * other[from + k];
        }
      return dx;
    },
    uses(s, which, cell) {
      const [outputs, inputs] = s.shapes[1], rows = s.count / outputs, line = Math.floor(cell / inputs);
      const use = (out, other, from, label) =>
        ({out, slope: s.x(other)[from], factors: [s.factor(label, other, from)]});
      const k = cell % inputs;
      if (which === 2)
        return Array.from({length: rows}, (_, r) => ({out: r * outputs + cell, slope: 1, factors: []}));
      if (which === 0)
        return Array.from({length: outputs}, (_, j) => use(line * outputs + j, 1, j * inputs + k, 'W'));
      return Array.from({length: rows}, (_, r) => use(r * outputs + line, 0, r * inputs + k, 'x'));
    },
    sources(s, cell) {
      const [outputs, inputs] = s.shapes[1], r = Math.floor(cell / outputs), j = cell % outputs;
      const terms = Array.from({length: inputs}, (_, k) => ({value: s.x(0)[r * inputs + k] * s.x(1)[j * inputs + k],
        factors: [s.factor('x', 0, r * inputs + k), s.factor('W', 1, j * inputs + k)]}));
      if (s.has(2)) terms.push({value: s.x(2)[j], factors: [s.factor('b', 2, j)]});
      return terms;
    },
  }));

  /** visit(out, x cell, weight cell) of every product of a convolution; `deep`: each filter reads all channels. */
  function visitProducts(s, deep, visit) {
    const [images, height, width, channels] = s.shapes[0], [outputs, , kh, kw] = s.shapes[1];
    const [, high, wide] = s.shape, step = s.attribute('stride'), padding = s.attribute('padding');
    const inputs = deep ? channels : 1, each = outputs / channels;
    for (let b = 0, o = 0; b < images; ++b)
      for (let i = 0; i < high; ++i)
        for (let j = 0; j < wide; ++j)
          for (let f = 0; f < outputs; ++f, ++o)
            for (let u = 0; u < kh; ++u)
              for (let v = 0; v < kw; ++v) {
                const y = i * step + u - padding, x = j * step + v - padding;
                if (y < 0 || x < 0 || y >= height || x >= width) continue;
                const at = ((b * height + y) * width + x) * channels + (deep ? 0 : Math.floor(f / each));
                for (let c = 0; c < inputs; ++c) visit(o, at + c, ((f * inputs + c) * kh + u) * kw + v);
              }
  }

  /** The products, sorted so that those of one output, input or weight cell are found without a walk over all. */
  function productsOf(s, deep, by) {
    return s.once(`products${by}`, () => {
      const lists = new Map();
      visitProducts(s, deep, (...cells) => {
        const key = cells[by];
        if (!lists.has(key)) lists.set(key, []);
        lists.get(key).push(cells);
      });
      return lists;
    });
  }

  const convolution = (deep) => ({
    forward(s) {
      const x = s.x(0), w = s.x(1), y = new Float64Array(s.count), outputs = s.shapes[1][0];
      visitProducts(s, deep, (o, a, b) => { y[o] += x[a] * w[b]; });
      if (s.has(2)) for (let o = 0; o < y.length; ++o) y[o] += s.x(2)[o % outputs];
      return y;
    },
    backward(s, which) {
      const dx = new Float64Array(size(s.shapes[which])), dy = s.dy, outputs = s.shapes[1][0];
      const x = s.x(0), w = s.x(1);
      if (which === 0) visitProducts(s, deep, (o, a, b) => { dx[a] += dy[o] * w[b]; });
      else if (which === 1) visitProducts(s, deep, (o, a, b) => { dx[b] += dy[o] * x[a]; });
      else for (let o = 0; o < dy.length; ++o) dx[o % outputs] += dy[o];
      return dx;
    },
    uses(s, which, cell) {
      const outputs = s.shapes[1][0];
      if (which === 2)
        return Array.from({length: s.count / outputs}, (_, r) => ({out: r * outputs + cell, slope: 1, factors: []}));
      const found = productsOf(s, deep, which + 1).get(cell) || [];
      return found.map(([o, a, b]) => which === 0 ? {out: o, slope: s.x(1)[b], factors: [s.factor('weight', 1, b)]}
        : {out: o, slope: s.x(0)[a], factors: [s.factor('x', 0, a)]});
    },
    sources(s, cell) {
      const found = productsOf(s, deep, 0).get(cell) || [], outputs = s.shapes[1][0];
      const terms = found.map(([, a, b]) => ({value: s.x(0)[a] * s.x(1)[b],
        factors: [s.factor('x', 0, a), s.factor('weight', 1, b)]}));
      if (s.has(2)) terms.push({value: s.x(2)[cell % outputs], factors: [s.factor('bias', 2, cell % outputs)]});
      return terms;
    },
  });
  define('conv2d', convolution(true));
  define('depthwise_conv2d', convolution(false));

  /** An op y_o = sum of coefficient x_c, given by lists of (c, coefficient) of each output cell. */
  function weighted(listsOf, label) {
    const lists = (s) => s.once('lists', () => listsOf(s));
    const turned = (s) => s.once('turned', () => {
      const all = Array.from({length: size(s.shapes[0])}, () => []);
      lists(s).forEach((list, out) => list.forEach(([c, by]) => all[c].push([out, by])));
      return all;
    });
    const factors = (by) => [{label, value: by, place: null}];
    return {
      forward: (s) => Float64Array.from(lists(s), (list) => list.reduce((sum, [c, by]) => sum + by * s.x(0)[c], 0)),
      backward(s) {
        const dx = new Float64Array(size(s.shapes[0])), dy = s.dy;
        lists(s).forEach((list, out) => list.forEach(([c, by]) => { dx[c] += by * dy[out]; }));
        return dx;
      },
      uses: (s, k, cell) => turned(s)[cell].map(([out, by]) => ({out, slope: by, factors: factors(by)})),
      sources: (s, cell) => lists(s)[cell].map(([c, by]) => ({value: by * s.x(0)[c],
        factors: [s.factor('x', 0, c), ...factors(by)]})),
    };
  }

  define('resample', weighted((s) => {
    const [images, height, width, channels] = s.shapes[0], [, high, wide] = s.shape;
    const rows = s.attribute('rows'), columns = s.attribute('columns'), lists = [];
    for (let b = 0; b < images; ++b)
      for (let i = 0; i < high; ++i)
        for (let j = 0; j < wide; ++j)
          for (let c = 0; c < channels; ++c) {
            const list = [];
            for (let u = 0; u < height; ++u)
              for (let v = 0; v < width; ++v) {
                const by = rows[i * height + u] * columns[j * width + v];
                if (by !== 0) list.push([((b * height + u) * width + v) * channels + c, by]);
              }
            lists.push(list);
          }
    return lists;
  }, 'taps'));

  define('rotary', weighted((s) => {
    const shape = s.shapes[0], width = shape[shape.length - 1], tokens = shape[shape.length - 2];
    const turns = s.attribute('turns'), pairs = turns.length / (2 * tokens);
    return Array.from({length: s.count}, (_, o) => {
      const channel = o % width, pair = Math.floor(channel / 2) % pairs, token = Math.floor(o / width) % tokens;
      const cos = turns[2 * (token * pairs + pair)], sin = turns[2 * (token * pairs + pair) + 1];
      return channel % 2 === 0 ? [[o, cos], [o + 1, -sin]] : [[o - 1, sin], [o, cos]];
    });
  }, 'cos or sin of the angle'));
})(globalThis.tessera = globalThis.tessera || {});
