(function (tessera) {
  'use strict';

  // Computes values and gradients of a pass again, in double, from those before them: the file holds only what
  // tells how each is rounded (apps/inspector/rounding.h). recomputed.cpp lists the same ops.
  // A step here has its operands x[k] and shapes[k], the output's shape, attributes; y and dy are the
  // output and its gradient. forward() fills y; backward() adds the gradient of operand k to dx.

  function predictors(tessera) {
    const size = (shape) => shape.reduce((product, n) => product * n, 1);

    /** Row-major strides of a shape stretched to `to`: 0 along stretched axes. */
    function stridesIn(shape, to) {
      const strides = new Array(to.length).fill(0);
      for (let i = shape.length - 1, step = 1; i >= 0; --i) {
        if (shape[i] > 1) strides[i + to.length - shape.length] = step;
        step *= shape[i];
      }
      return strides;
    }

    /** Calls visit(n, a, b) for each index of a shape in order: its place, and those by two rows of strides. */
    function walk(shape, stridesA, stridesB, visit) {
      const index = new Array(shape.length).fill(0), count = size(shape);
      let a = 0, b = 0;
      for (let n = 0; n < count; ++n) {
        visit(n, a, b);
        for (let i = shape.length - 1; i >= 0; --i) {
          a += stridesA[i];
          b += stridesB[i];
          if (++index[i] < shape[i]) break;
          a -= shape[i] * stridesA[i];
          b -= shape[i] * stridesB[i];
          index[i] = 0;
        }
      }
    }

    /** An op of two operands that broadcast: value(a, b), and slopes of each as slope(a, b, y, dy). */
    function binary(value, slopes) {
      const strides = (s) => [stridesIn(s.shapes[0], s.shape), stridesIn(s.shapes[1], s.shape)];
      return {
        forward(s, y) {
          walk(s.shape, ...strides(s), (n, i, j) => { y[n] = value(s.x[0][i], s.x[1][j]); });
        },
        backward(s, k, dx) {
          const slope = slopes[k];
          walk(s.shape, ...strides(s), (n, i, j) => {
            dx[k === 0 ? i : j] += slope(s.x[0][i], s.x[1][j], s.y[n], s.dy[n]);
          });
        },
      };
    }

    /** An op on each cell alone: value(x, attributes), and dx as slope(x, y, dy, attributes). */
    function unary(value, slope) {
      return {
        forward(s, y) { for (let i = 0; i < y.length; ++i) y[i] = value(s.x[0][i], s.attributes); },
        backward(s, k, dx) {
          for (let i = 0; i < dx.length; ++i) dx[i] += slope(s.x[0][i], s.y[i], s.dy[i], s.attributes);
        },
      };
    }

    /** An op whose cells are copies: visit(s, k, f) calls f(place in y, place in operand k). */
    function copying(visit) {
      return {
        forward(s, y) { s.x.forEach((x, k) => visit(s, k, (to, from) => { y[to] = x[from]; })); },
        backward(s, k, dx) { visit(s, k, (to, from) => { dx[from] += s.dy[to]; }); },
      };
    }

    const linear = {
      forward(s, y) {
        const [x, w, b] = s.x, [outs, ins] = s.shapes[1], rows = y.length / outs;
        for (let r = 0; r < rows; ++r)
          for (let o = 0; o < outs; ++o) {
            let sum = 0;
            for (let i = 0, xi = r * ins, wi = o * ins; i < ins; ++i) sum += x[xi + i] * w[wi + i];
            y[r * outs + o] = b ? sum + b[o] : sum;
          }
      },
      backward(s, k, dx) {
        const [x, w] = s.x, [outs, ins] = s.shapes[1], dy = s.dy, rows = dy.length / outs;
        for (let r = 0; r < rows; ++r)
          for (let o = 0; o < outs; ++o) {
            const d = dy[r * outs + o];
            if (d === 0) continue;
            const xi = r * ins, wi = o * ins;
            if (k === 0) for (let i = 0; i < ins; ++i) dx[xi + i] += d * w[wi + i];
            else if (k === 1) for (let i = 0; i < ins; ++i) dx[wi + i] += d * x[xi + i];
            else dx[o] += d;
          }
      },
    };

    /** The matrices of a matmul: their number, sizes and steps; aStep is from batch to batch, ai along rows. */
    function matrices(s) {
      const [a, b] = s.shapes, ta = s.attributes.transpose_a, tb = s.attributes.transpose_b;
      const m = s.shape[s.shape.length - 2], n = s.shape[s.shape.length - 1];
      const k = a[a.length - (ta ? 2 : 1)], batches = size(s.shape) / (m * n);
      return {m, n, k, batches, aStep: size(a) === m * k ? 0 : m * k, bStep: size(b) === k * n ? 0 : k * n,
        ai: ta ? 1 : k, ak: ta ? m : 1, bk: tb ? 1 : n, bj: tb ? k : 1};
    }

    /** c[i, j] += sum over p of a[i, p] b[p, j], with steps along both axes of each. */
    function product(rows, columns, depth, a, b, c) {
      for (let i = 0; i < rows; ++i)
        for (let j = 0; j < columns; ++j) {
          let sum = 0;
          for (let p = 0, ia = a.at + i * a.down, ib = b.at + j * b.along; p < depth; ++p) {
            sum += a.data[ia] * b.data[ib];
            ia += a.along;
            ib += b.down;
          }
          c.data[c.at + i * c.down + j * c.along] += sum;
        }
    }

    const matmul = {
      forward(s, y) {
        const z = matrices(s);
        for (let t = 0; t < z.batches; ++t)
          product(z.m, z.n, z.k, {data: s.x[0], at: t * z.aStep, down: z.ai, along: z.ak},
            {data: s.x[1], at: t * z.bStep, down: z.bk, along: z.bj},
            {data: y, at: t * z.m * z.n, down: z.n, along: 1});
      },
      backward(s, k, dx) {
        const z = matrices(s), dy = (t, down, along) => ({data: s.dy, at: t * z.m * z.n, down, along});
        for (let t = 0; t < z.batches; ++t)
          if (k === 0)  // da = dy b^T
            product(z.m, z.k, z.n, dy(t, z.n, 1), {data: s.x[1], at: t * z.bStep, down: z.bj, along: z.bk},
              {data: dx, at: t * z.aStep, down: z.ai, along: z.ak});
          else  // db = a^T dy
            product(z.k, z.n, z.m, {data: s.x[0], at: t * z.aStep, down: z.ak, along: z.ai}, dy(t, z.n, 1),
              {data: dx, at: t * z.bStep, down: z.bk, along: z.bj});
      },
    };

    /** The mean of a row of x and 1 / sqrt(its variance + eps). */
    function moments(x, at, width, eps) {
      let sum = 0, squares = 0;
      for (let i = 0; i < width; ++i) sum += x[at + i];
      const mean = sum / width;
      for (let i = 0; i < width; ++i) squares += (x[at + i] - mean) * (x[at + i] - mean);
      return {mean, rstd: 1 / Math.sqrt(squares / width + eps)};
    }

    const layerNorm = {
      forward(s, y) {
        const [x, w, b] = s.x, width = w.length;
        for (let at = 0; at < y.length; at += width) {
          const {mean, rstd} = moments(x, at, width, s.attributes.eps);
          for (let i = 0; i < width; ++i) y[at + i] = (x[at + i] - mean) * rstd * w[i] + b[i];
        }
      },
      backward(s, k, dx) {
        const [x, w] = s.x, width = w.length, dy = s.dy;
        for (let at = 0; at < dy.length; at += width) {
          if (k === 2) {
            for (let i = 0; i < width; ++i) dx[i] += dy[at + i];
            continue;
          }
          const {mean, rstd} = moments(x, at, width, s.attributes.eps);
          if (k === 1) {
            for (let i = 0; i < width; ++i) dx[i] += dy[at + i] * (x[at + i] - mean) * rstd;
            continue;
          }
          let sum = 0, product = 0;
          for (let i = 0; i < width; ++i) {
            sum += dy[at + i] * w[i];
            product += dy[at + i] * w[i] * (x[at + i] - mean) * rstd;
          }
          for (let i = 0; i < width; ++i)
            dx[at + i] += (dy[at + i] * w[i] - sum / width - (x[at + i] - mean) * rstd * product / width) * rstd;
        }
      },
    };

    const softmax = {
      forward(s, y) {
        const x = s.x[0], width = s.shape[s.shape.length - 1];
        for (let at = 0; at < y.length; at += width) {
          let most = -Infinity, sum = 0;
          for (let i = 0; i < width; ++i) most = Math.max(most, x[at + i]);
          for (let i = 0; i < width; ++i) sum += y[at + i] = Math.exp(x[at + i] - most);
          for (let i = 0; i < width; ++i) y[at + i] /= sum;
        }
      },
      backward(s, k, dx) {
        const {y, dy} = s, width = s.shape[s.shape.length - 1];
        for (let at = 0; at < dx.length; at += width) {
          let sum = 0;
          for (let i = 0; i < width; ++i) sum += dy[at + i] * y[at + i];
          for (let i = 0; i < width; ++i) dx[at + i] += y[at + i] * (dy[at + i] - sum);
        }
      },
    };

    /** erf by its series of positive terms, exp(-x^2) sum 2^n x^(2n+1) / (2n+1)!!. */
    function erf(x) {
      const far = Math.abs(x);
      if (far > 6) return Math.sign(x);
      let term = x, sum = x;
      for (let n = 1; Math.abs(term) > 1e-18 * Math.abs(sum); ++n) sum += term *= 2 * x * x / (2 * n + 1);
      return 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * sum;
    }

    const normal = (x) => 0.5 * (1 + erf(x * Math.SQRT1_2));
    const density = (x) => Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
    const sigmoid = (x) => 1 / (1 + Math.exp(-x));

    const permute = copying((s, k, f) => {
      const from = stridesIn(s.shapes[0], s.shapes[0]), order = s.attributes.order;
      walk(s.shape, order.map((axis) => from[axis]), order.map(() => 0), (n, i) => f(n, i));
    });

    /** Where slice number k of axis `axis` begins in the whole, and both shapes. */
    function part(f, whole, piece, axis, first) {
      const inner = size(whole.slice(axis + 1)), outer = size(whole.slice(0, axis));
      const run = piece[axis] * inner, step = whole[axis] * inner;
      for (let o = 0; o < outer; ++o)
        for (let i = 0; i < run; ++i) f(o * run + i, o * step + first * inner + i);
    }

    const slice = copying((s, k, f) => part(f, s.shapes[0], s.shape, s.attributes.axis, s.attributes.first));
    const concat = copying((s, k, f) => {
      const axis = s.attributes.axis;
      const first = s.shapes.slice(0, k).reduce((sum, shape) => sum + shape[axis], 0);
      part((piece, whole) => f(whole, piece), s.shape, s.shapes[k], axis, first);
    });
    const broadcastTo = copying((s, k, f) => {
      const from = stridesIn(s.shapes[0], s.shape);
      walk(s.shape, from, from, (n, i) => f(n, i));
    });

    const maskDiagonal = {
      forward(s, y) {
        const n = s.shape[s.shape.length - 1];
        for (let i = 0; i < y.length; ++i)
          y[i] = i % n === Math.floor(i / n) % n ? s.attributes.value : s.x[0][i];
      },
      backward(s, k, dx) {
        const n = s.shape[s.shape.length - 1];
        for (let i = 0; i < dx.length; ++i) if (i % n !== Math.floor(i / n) % n) dx[i] += s.dy[i];
      },
    };

    const ops = {
      linear, matmul, softmax, permute, slice, concat,
      layer_norm: layerNorm,
      broadcast_to: broadcastTo,
      mask_diagonal: maskDiagonal,
      add: binary((a, b) => a + b, [(a, b, y, dy) => dy, (a, b, y, dy) => dy]),
      drop_path: binary((a, b) => a + b, [(a, b, y, dy) => dy, (a, b, y, dy) => dy]),
      subtract: binary((a, b) => a - b, [(a, b, y, dy) => dy, (a, b, y, dy) => -dy]),
      multiply: binary((a, b) => a * b, [(a, b, y, dy) => dy * b, (a, b, y, dy) => dy * a]),
      scale: unary((x, {c}) => c * x, (x, y, dy, {c}) => c * dy),
      add_scalar: unary((x, {c}) => x + c, (x, y, dy) => dy),
      relu: unary((x) => x < 0 ? 0 : x, (x, y, dy) => x > 0 ? dy : 0),
      gelu: unary((x) => x * normal(x), (x, y, dy) => dy * (normal(x) + x * density(x))),
      sigmoid: unary(sigmoid, (x, y, dy) => dy * sigmoid(x) * (1 - sigmoid(x))),
      silu: unary((x) => x * sigmoid(x), (x, y, dy) => dy * sigmoid(x) * (1 + x * (1 - sigmoid(x)))),
    };

    /** The step as the ops above take it. */
    function stepOf(pass, step) {
      return {
        x: step.inputs.map((i) => i < 0 ? null : pass.value(i)),
        shapes: step.shapes,
        shape: pass.values[step.output].shape,
        attributes: step.attributes,
        y: pass.value(step.output),
        dy: pass.gradient(step.output),
      };
    }

    function forward(pass, i) {
      const step = pass.steps[pass.values[i].step], y = new Float64Array(size(pass.values[i].shape));
      ops[step.op].forward(stepOf(pass, step), y);
      return y;
    }

    /** The gradient of value i: the sum of what its readers give, the last one first. */
    function backward(pass, i) {
      const dx = new Float64Array(size(pass.values[i].shape)), readers = pass.values[i].readers;
      for (let r = readers.length - 1; r >= 0; --r) {
        const step = pass.steps[readers[r].step];
        if (pass.gradient(step.output)) ops[step.op].backward(stepOf(pass, step), readers[r].input, dx);
      }
      return dx;
    }

    tessera.predict = {forward, backward};
  }

  predictors(tessera);
  (tessera.workerParts = tessera.workerParts || []).push(predictors);
})(globalThis.tessera = globalThis.tessera || {});
