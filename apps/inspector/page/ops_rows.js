// Ops on rows or channels as a whole: norms, softmax, cross entropy; and the decay of content-aware gating.
(function (tessera) {
  'use strict';

  const {put, size} = tessera.numbers, {define} = tessera.ops, {activated} = tessera.ops.kinds;
  const number = (label, value) => [{label, value, place: null}];

  const rowOf = (cell, width) => Math.floor(cell / width) * width;
  const widthOf = (s) => s.shapes[0][s.shapes[0].length - 1];

  function softmaxRows(s, log) {
    const x = s.x(0), width = widthOf(s), y = new Float64Array(s.count);
    for (let first = 0; first < y.length; first += width) {
      let most = -Infinity, sum = 0;
      for (let j = 0; j < width; ++j) most = Math.max(most, x[first + j]);
      for (let j = 0; j < width; ++j) sum += y[first + j] = Math.exp(x[first + j] - most);
      for (let j = 0; j < width; ++j)
        y[first + j] = log ? x[first + j] - most - Math.log(sum) : y[first + j] / sum;
    }
    return y;
  }

  const softmax = (log) => ({
    forward: (s) => softmaxRows(s, log),
    backward(s) {
      const y = s.y, dy = s.dy, width = widthOf(s), dx = new Float64Array(s.count);
      for (let first = 0; first < dx.length; first += width) {
        let sum = 0;
        for (let j = 0; j < width; ++j) sum += log ? dy[first + j] : dy[first + j] * y[first + j];
        for (let j = first; j < first + width; ++j)
          dx[j] = log ? dy[j] - Math.exp(y[j]) * sum : y[j] * (dy[j] - sum);
      }
      return dx;
    },
    uses(s, k, cell) {
      const width = widthOf(s), first = rowOf(cell, width), y = s.y;
      return Array.from({length: width}, (_, j) => {
        const out = first + j, same = out === cell ? 1 : 0;
        if (log) return {out, slope: same - Math.exp(y[cell]), factors: number('δ − exp(y)', same - Math.exp(y[cell]))};
        return {out, slope: y[out] * (same - y[cell]), factors: [
          {label: 'y', value: y[out], place: s.outPlace(out, false)},
          {label: 'δ − y', value: same - y[cell], place: s.outPlace(cell, false)}]};
      });
    },
    text(s, k, cell) {
      const width = widthOf(s), first = rowOf(cell, width), y = s.y, dy = s.dy;
      let sum = 0;
      for (let j = first; j < first + width; ++j) sum += log ? dy[j] : dy[j] * y[j];
      return log
        ? put([dy[cell], Math.exp(y[cell]), sum], (g, p, all) => g - p * all, (g, p, all) => `${g} − ${p} · ${all}`)
        : put([y[cell], dy[cell], sum], (p, g, all) => p * (g - all), (p, g, all) => `${p} · (${g} − ${all})`);
    },
    valueText(s, cell) {
      const width = widthOf(s), first = rowOf(cell, width), x = s.x(0);
      let sum = 0;
      for (let j = first; j < first + width; ++j) sum += Math.exp(x[j]);
      return log ? put([x[cell], sum], (one, all) => one - Math.log(all), (one, all) => `${one} − log ${all}`)
        : put([x[cell], sum], (one, all) => Math.exp(one) / all, (one, all) => `exp(${one}) / ${all}`);
    },
  });
  define('softmax', softmax(false));
  define('log_softmax', softmax(true));

  /** Mean and 1 / sqrt(var + eps) of each row (layer norm) or channel (batch norm), and which a cell belongs to. */
  function statistics(s, rows) {
    return s.once('statistics', () => {
      const x = s.x(0), width = widthOf(s), groups = rows ? s.count / width : width, count = s.count / groups;
      const group = rows ? (i) => Math.floor(i / width) : (i) => i % width;
      const mean = new Float64Array(groups), rstd = new Float64Array(groups);
      if (!rows && !(s.attribute('training') > 0)) {
        mean.set(s.attribute('mean'));
        rstd.set(s.attribute('variance'));
      } else {
        for (let i = 0; i < s.count; ++i) mean[group(i)] += x[i] / count;
        for (let i = 0; i < s.count; ++i) rstd[group(i)] += (x[i] - mean[group(i)]) ** 2 / count;
      }
      for (let g = 0; g < groups; ++g) rstd[g] = 1 / Math.sqrt(rstd[g] + s.attribute('eps'));
      const h = Float64Array.from(x, (value, i) => (value - mean[group(i)]) * rstd[group(i)]);
      const moves = rows || s.attribute('training') > 0;  // whether mean and variance depend on x
      return {width, groups, count, group, mean, rstd, h, moves};
    });
  }

  const norm = (rows) => ({
    forward(s) {
      const {h, width} = statistics(s, rows), weight = s.x(1), bias = s.x(2);
      return h.map((value, i) => value * weight[i % width] + bias[i % width]);
    },
    backward(s, k) {
      const {h, width, groups, count, group, rstd, moves} = statistics(s, rows), dy = s.dy, weight = s.x(1);
      if (k > 0) {
        const sums = new Float64Array(width);
        for (let i = 0; i < s.count; ++i) sums[i % width] += k === 1 ? dy[i] * h[i] : dy[i];
        return sums;
      }
      const mean = new Float64Array(groups), along = new Float64Array(groups);
      for (let i = 0; i < s.count && moves; ++i) {
        mean[group(i)] += dy[i] * weight[i % width] / count;
        along[group(i)] += dy[i] * weight[i % width] * h[i] / count;
      }
      return h.map((value, i) =>
        (dy[i] * weight[i % width] - mean[group(i)] - value * along[group(i)]) * rstd[group(i)]);
    },
    uses(s, k, cell) {
      const {h, width, count, group, rstd, moves} = statistics(s, rows), weight = s.x(1), used = [];
      if (k > 0) {
        for (let out = cell; out < s.count; out += width)
          used.push({out, slope: k === 1 ? h[out] : 1, factors: k === 1 ? number('h', h[out]) : []});
        return used;
      }
      const first = rows ? rowOf(cell, width) : cell % width, step = rows ? 1 : width;
      for (let n = 0, out = first; n < count; ++n, out += step) {
        const inner = (out === cell ? 1 : 0) - (moves ? (1 + h[cell] * h[out]) / count : 0);
        if (inner === 0) continue;
        used.push({out, slope: weight[out % width] * rstd[group(cell)] * inner, factors: [
          s.factor('weight', 1, out % width), ...number('1 / σ', rstd[group(cell)]),
          ...number(moves ? 'δ − (1 + h h) / n' : 'δ', inner)]});
      }
      return used;
    },
    text(s, k, cell) {
      if (k > 0) return null;
      const {h, width, count, group, rstd, moves} = statistics(s, rows), dy = s.dy, weight = s.x(1);
      const first = rows ? rowOf(cell, width) : cell % width, step = rows ? 1 : width;
      let mean = 0, along = 0;
      for (let n = 0, i = first; n < count; ++n, i += step) {
        mean += dy[i] * weight[i % width] / count;
        along += dy[i] * weight[i % width] * h[i] / count;
      }
      const own = dy[cell] * weight[cell % width], by = 1 / rstd[group(cell)];
      return moves ? put([own, mean, h[cell], along, by], (g, m, x, t, sd) => (g - m - x * t) / sd,
        (g, m, x, t, sd) => `(${g} − ${m} − ${x} · ${t}) / ${sd}`)
        : put([own, by], (g, sd) => g / sd, (g, sd) => `${g} / ${sd}`);
    },
    valueText(s, cell) {
      const {width, group, mean, rstd} = statistics(s, rows);
      const k = group(cell), numbers = [s.x(0)[cell], mean[k], 1 / rstd[k], s.x(1)[cell % width], s.x(2)[cell % width]];
      return put(numbers, (x, m, sd, w, b) => (x - m) / sd * w + b,
        (x, m, sd, w, b) => `(${x} − ${m}) / ${sd} · ${w} + ${b}`);
    },
  });
  define('layer_norm', norm(true));
  define('batch_norm', activated(norm(false)));

  /** Softmax of the logits, and each row's sum of shares. */
  const classes = (s) => s.once('classes', () => {
    const targets = s.attribute('targets'), width = widthOf({shapes: s.shapes});
    const wide = {shapes: s.shapes, count: size(s.shapes[0]), x: () => s.x(0)};
    const totals = new Float64Array(wide.count / width);
    for (let i = 0; i < wide.count; ++i) totals[Math.floor(i / width)] += targets[i];
    return {targets, width, totals, p: softmaxRows(wide, false), logs: softmaxRows(wide, true)};
  });
  define('cross_entropy', {
    forward(s) {
      const {targets, logs} = classes(s);
      let sum = 0;
      for (let i = 0; i < logs.length; ++i) if (targets[i] !== 0) sum -= targets[i] * logs[i];
      return Float64Array.of(sum / s.attribute('divisor'));
    },
    backward(s) {
      const {targets, width, totals, p} = classes(s), by = s.dy[0] / s.attribute('divisor');
      return p.map((share, i) => by * (share * totals[Math.floor(i / width)] - targets[i]));
    },
    uses(s, k, cell) {
      const {targets, width, totals, p} = classes(s), total = totals[Math.floor(cell / width)];
      const miss = p[cell] * total - targets[cell], slope = miss / s.attribute('divisor');
      return [{out: 0, slope, factors: [...number('softmax(x) − t', miss), ...number('1 / rows', slope / miss || 0)]}];
    },
    sources(s) {
      const {targets, logs} = classes(s), terms = [];
      for (let i = 0; i < logs.length; ++i)
        if (targets[i] !== 0)
          terms.push({value: -targets[i] * logs[i] / s.attribute('divisor'), factors: [
            ...number('−t', -targets[i]), {label: 'log softmax(x)', value: logs[i], place: s.place(0, i)},
            ...number('1 / rows', 1 / s.attribute('divisor'))]});
      return terms;
    },
    text(s, k, cell) {
      const {targets, width, totals, p} = classes(s);
      return put([s.dy[0], p[cell], totals[Math.floor(cell / width)], targets[cell], s.attribute('divisor')],
        (g, share, all, t, rows) => g * (share * all - t) / rows,
        (g, share, all, t, rows) => `${g} · (${share} · ${all} − ${t}) / ${rows}`);
    },
  });

  /** Calls visit(out, i, j, inner) for the scores of gates [B, N, H]: inner = alpha d_ij (g_i + g_j) / 2. */
  function eachScore(s, visit) {
    const [images, tokens, heads] = s.shapes[0], g = s.x(0), d = s.attribute('distance'), alpha = s.attribute('alpha');
    for (let b = 0, out = 0; b < images; ++b)
      for (let h = 0; h < heads; ++h)
        for (let i = 0; i < tokens; ++i)
          for (let j = 0; j < tokens; ++j, ++out) {
            const at = (b * tokens + i) * heads + h, other = (b * tokens + j) * heads + h;
            visit(out, at, other, alpha * d[i * tokens + j] / 2, g[at] + g[other]);
          }
  }
  define('content_decay', {
    forward(s) {
      const y = new Float64Array(s.count);
      eachScore(s, (out, i, j, half, sum) => { y[out] = -Math.abs(half * sum); });
      return y;
    },
    backward(s) {
      const dx = new Float64Array(size(s.shapes[0])), dy = s.dy;
      eachScore(s, (out, i, j, half, sum) => {
        const slope = -Math.sign(half * sum) * half * dy[out];
        dx[i] += slope;
        dx[j] += slope;
      });
      return dx;
    },
    uses(s, k, cell) {
      const used = [];
      eachScore(s, (out, i, j, half, sum) => {
        const times = (i === cell ? 1 : 0) + (j === cell ? 1 : 0), slope = -Math.sign(half * sum) * half * times;
        if (slope !== 0) used.push({out, slope, factors: number('−sign · α d / 2', slope)});
      });
      return used;
    },
  });
})(globalThis.tessera = globalThis.tessera || {});
