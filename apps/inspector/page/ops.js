// What each op computes, in double from its stored inputs: whole tensors, and cell by cell. The ops_*.js register
// theirs; ops that only move numbers, work on single elements, or on pairs of them share what is here.
(function (tessera) {
  'use strict';

  const {size, strides} = tessera.numbers;
  const table = new Map(), contexts = new WeakMap();

  /** A step with its numbers at hand. */
  class Step {
    constructor(pass, step) {
      this.pass = pass;
      this.step = step;
      this.shapes = step.shapes;
      this.shape = pass.values[step.output].shape;
      this.count = size(this.shape);
      this.kept = new Map();
    }

    has(k) { return k < this.step.inputs.length && this.step.inputs[k] >= 0; }
    x(k) { return this.pass.value(this.step.inputs[k]); }
    get y() { return this.pass.value(this.step.output); }
    get dy() { return this.pass.gradient(this.step.output); }
    /** A number, a list of numbers, a text, or the numbers of a tensor. */
    attribute(name) {
      const value = this.step.attributes[name];
      if (value === 'inf' || value === '-inf') return value === 'inf' ? Infinity : -Infinity;
      return value && Array.isArray(value.values) ? value.values : value;
    }

    /** make(), once for the step. */
    once(name, make) {
      if (!this.kept.has(name)) this.kept.set(name, make());
      return this.kept.get(name);
    }

    /** The same step with other numbers for input k. */
    withInput(k, numbers) {
      const changed = Object.create(this);
      changed.kept = new Map();
      changed.x = (i) => i === k ? numbers : this.x(i);
      return changed;
    }

    place(k, cell) { return {value: this.step.inputs[k], gradient: false, cell}; }
    outPlace(cell, gradient) { return {value: this.step.output, gradient, cell}; }
    factor(label, k, cell) { return {label, value: this.x(k)[cell], place: this.place(k, cell)}; }
  }

  function contextOf(pass, step) {
    if (!contexts.has(step)) contexts.set(step, new Step(pass, step));
    return contexts.get(step);
  }

  /**
   * An op is {forward(s): the output; backward(s, k): what dy gives to input k; uses(s, k, cell): for each output
   * cell that input cell moves, {out, slope, factors} with slope = dy_out / dx_cell; sources(s, cell): where it is a
   * sum, its terms {value, factors}; text(s, k, cell), valueText(s, cell): put() of its numbers; formulas(step):
   * {forward, backward} where the step's attributes change the catalog's}.
   */
  const define = (names, op) => [].concat(names).forEach((name) => table.set(name, op));

  /** An op whose output cells each are one input cell: map(s, k)[out] is its cell, -1 for none. */
  function moves(map) {
    const mapOf = (s, k) => s.once(`map${k}`, () => map(s, k));
    return {
      moves: true,
      forward(s) {
        const y = new Float64Array(s.count);
        for (let k = 0; k < s.step.inputs.length; ++k) {
          const from = mapOf(s, k), x = s.x(k);
          for (let o = 0; o < y.length; ++o) if (from[o] >= 0) y[o] = x[from[o]];
        }
        return y;
      },
      backward(s, k) {
        const dx = new Float64Array(size(s.shapes[k])), from = mapOf(s, k), dy = s.dy;
        for (let o = 0; o < from.length; ++o) if (from[o] >= 0) dx[from[o]] += dy[o];
        return dx;
      },
      uses(s, k, cell) {
        const from = mapOf(s, k), used = [];
        for (let o = from.indexOf(cell); o >= 0; o = from.indexOf(cell, o + 1))
          used.push({out: o, slope: 1, factors: []});
        return used;
      },
      sources(s, cell) {
        for (let k = 0; k < s.step.inputs.length; ++k) {
          const from = mapOf(s, k)[cell];
          if (from >= 0) return [{value: s.x(k)[from], factors: [s.factor('x', k, from)]}];
        }
        return [];
      },
    };
  }

  /** An op on each element: f(x, s) and its slope(x, y, s). */
  function elements(f, slope, words) {
    return {
      f, slope, words,
      forward(s) {
        const x = s.x(0), y = new Float64Array(s.count);
        for (let i = 0; i < y.length; ++i) y[i] = f(x[i], s);
        return y;
      },
      backward(s) {
        const x = s.x(0), y = s.y, dy = s.dy, dx = new Float64Array(s.count);
        for (let i = 0; i < dx.length; ++i) dx[i] = dy[i] * slope(x[i], y[i], s);
        return dx;
      },
      uses(s, k, cell) {
        const by = slope(s.x(0)[cell], s.y[cell], s);
        return [{out: cell, slope: by, factors: [{label: words || 'slope', value: by, place: s.place(0, cell)}]}];
      },
    };
  }

  /** For each cell of `shape`, the cell of an input that NumPy's broadcasting stretches to it. */
  function stretched(from, shape) {
    const steps = strides(from), map = new Int32Array(size(shape)), ahead = shape.length - from.length;
    const own = shape.map((_, i) => i < ahead || from[i - ahead] === 1 ? 0 : steps[i - ahead]);
    const index = new Array(shape.length).fill(0);
    for (let o = 0, place = 0; o < map.length; ++o) {
      map[o] = place;
      for (let i = shape.length - 1; i >= 0; --i) {
        place += own[i];
        if (++index[i] < shape[i]) break;
        place -= own[i] * shape[i];
        index[i] = 0;
      }
    }
    return map;
  }

  /**
   * An op on pairs that broadcast: f(a, b), the slopes of a and of b as functions of (a, b, y), and termsOf(a, b): the
   * terms of its value, of the factors a and b.
   */
  function pairs(f, slopes, factorOf, termsOf) {
    const mapOf = (s, k) => s.once(`map${k}`, () => stretched(s.shapes[k], s.shape));
    return {
      forward(s) {
        const a = s.x(0), b = s.x(1), at = mapOf(s, 0), bt = mapOf(s, 1), y = new Float64Array(s.count);
        for (let o = 0; o < y.length; ++o) y[o] = f(a[at[o]], b[bt[o]]);
        return y;
      },
      backward(s, k) {
        const a = s.x(0), b = s.x(1), at = mapOf(s, 0), bt = mapOf(s, 1), own = k === 0 ? at : bt;
        const dx = new Float64Array(size(s.shapes[k])), dy = s.dy, y = s.y;
        for (let o = 0; o < dy.length; ++o) dx[own[o]] += dy[o] * slopes[k](a[at[o]], b[bt[o]], y[o]);
        return dx;
      },
      uses(s, k, cell) {
        const a = s.x(0), b = s.x(1), at = mapOf(s, 0), bt = mapOf(s, 1), own = k === 0 ? at : bt, used = [];
        for (let o = own.indexOf(cell); o >= 0; o = own.indexOf(cell, o + 1)) {
          const slope = slopes[k](a[at[o]], b[bt[o]], s.y[o]);
          used.push({out: o, slope, factors: factorOf(s, k, k === 0 ? bt[o] : at[o], slope)});
        }
        return used;
      },
      sources(s, cell) {
        const at = mapOf(s, 0)[cell], bt = mapOf(s, 1)[cell];
        return termsOf(s.factor('a', 0, at), s.factor('b', 1, bt)).map((factors) =>
          ({value: factors.reduce((product, factor) => product * factor.value, 1), factors}));
      },
    };
  }

  /**
   * An op whose result z may go through an activation in the same step, which its attribute f names:
   * y = f(z), dz = dy f'(z). A pass that keeps all values has the activation as a step of its own.
   */
  function activated(op) {
    const within = (s) => {
      const f = s.attribute('f');
      return f && f !== 'none' ? table.get(f) : null;
    };
    const sums = (s) => s.once('z', () => op.forward(s));
    const slope = (s, out) => within(s).slope(sums(s)[out], s.y[out], s);
    /** The step as it would be without the activation. */
    const before = (s) => s.once('before', () => Object.create(s, {
      kept: {value: new Map(), writable: true},
      y: {value: sums(s)},
      dy: {value: s.dy && s.dy.map((dy, o) => dy * slope(s, o))},
    }));
    /** A formula of z has no numbers to show where f comes after it. */
    const words = (tell) => tell && ((s, ...rest) => within(s) ? '' : tell(s, ...rest));
    return {
      ...op,
      forward: (s) => within(s) ? sums(s).map((z) => within(s).f(z, s)) : op.forward(s),
      backward: (s, k) => op.backward(within(s) ? before(s) : s, k),
      uses(s, k, cell) {
        if (!within(s)) return op.uses(s, k, cell);
        return op.uses(before(s), k, cell).map((use) => {
          const own = slope(s, use.out);
          return {out: use.out, slope: use.slope * own,
            factors: [...use.factors, {label: 'f′(z)', value: own, place: null}]};
        });
      },
      sources: op.sources && ((s, cell) => within(s) ? [] : op.sources(s, cell)),
      text: words(op.text),
      valueText: words(op.valueText),
    };
  }

  function opOf(step) {
    if (!table.has(step.op)) throw new Error(`the page cannot compute ${step.op} again`);
    return table.get(step.op);
  }

  /** {forward, backward}: the formulas of a step as it was asked for, the catalog's where no attribute changes them. */
  function formulas(step) {
    const op = table.get(step.op);
    return op && op.formulas ? op.formulas(step) : tessera.catalog[step.op] || {};
  }

  tessera.ops = {
    has: (name) => table.has(name),
    names: () => [...table.keys()],
    of: opOf,
    contextOf,
    formulas,
    define,
    kinds: {moves, elements, pairs, activated},
    stretched,
    /** The output of a step, computed again in double from its stored inputs. */
    forward: (pass, step) => opOf(step).forward(contextOf(pass, step)),
    /** What a step adds to the gradient of its input k, computed in double from the stored inputs and dy. */
    backward: (pass, step, k) => opOf(step).backward(contextOf(pass, step), k),
  };
})(globalThis.tessera = globalThis.tessera || {});
