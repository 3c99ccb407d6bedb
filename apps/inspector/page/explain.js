// How one number came about: the sum that made it, term by term, and whether a difference quotient agrees.
(function (tessera) {
  'use strict';

  const {at, short, put, equation} = tessera.numbers;

  const byMagnitude = (a, b) => Math.abs(b.value) - Math.abs(a.value);
  const sumOf = (terms) => terms.reduce((sum, term) => sum + term.value, 0);

  /**
   * "a · b + c · d + … 61 more" with the numbers of the largest terms; a lesson's are few and all shown. Where all are
   * shown they have the digits that their sum needs.
   */
  function summed(terms, shown = tessera.page && tessera.page.kind === 'lesson' ? 20 : 3) {
    const products = terms.slice(0, shown).map((term) => term.factors.length > 0 ? term.factors : [term]);
    const numbers = products.flatMap((factors) => factors.map((factor) => factor.value));
    const take = (from) => {
      let next = 0;
      return products.map((factors) => factors.map(() => from[next++]));
    };
    const sum = (...values) => take(values).reduce((all, factors) => all + factors.reduce((p, x) => p * x, 1), 0);
    const words = (...texts) => take(texts).map((factors) => factors.join(' · ')).join(' + ');
    if (terms.length <= shown) return put(numbers, sum, words);
    const some = put(numbers, () => NaN, words);
    return {...some, text: `${some.text} + … ${terms.length - shown} more`};
  }

  const added = (numbers) => put(numbers, (...each) => each.reduce((sum, x) => sum + x, 0), (...texts) =>
    texts.join(' + '));

  function withPass(pass, terms) {
    const number = tessera.page ? tessera.page.passes.indexOf(pass) : 0;
    const name = (factor) => {
      if (!factor.place) return factor;
      const value = pass.values[factor.place.value];
      return {...factor, place: {...factor.place, pass: number},
        label: `${factor.label}${at(value.shape, factor.place.cell)}`};
    };
    return terms.map((term) => {
      const factors = term.factors.map(name);
      return {value: term.value, factors, label: factors.map((factor) => factor.label).join(' · ')};
    }).sort(byMagnitude);
  }

  /** Of an op that the page cannot compute again, because it is fused and keeps nothing in between. */
  const untold = (step, total, formula) => ({formula, substituted: '', terms: [], total, parts: [], step: step.index,
    note: `${step.op} ran as one fused kernel, which keeps no numbers in between: its terms are not shown.`});

  /** How the value came about: {formula, substituted, terms, total, parts, note}. */
  function explainValue(pass, i, cell) {
    const value = pass.values[i];
    if (value.step < 0)
      return {formula: '', substituted: '', terms: [], total: pass.value(i)[cell], parts: [],
        note: value.kind === 'computed' ? 'Made by a step that was left out of this page, as asked.'
          : value.parameter ? 'A parameter: the optimizer changes it.'
          : value.kind === 'constant' ? 'A constant of the pass: no gradient is wanted for it.'
            : 'An input of the pass.'};
    const step = pass.steps[value.step];
    if (!tessera.ops.has(step.op)) return untold(step, pass.value(i)[cell], tessera.ops.formulas(step).forward);
    const op = tessera.ops.of(step), s = tessera.ops.contextOf(pass, step);
    const found = op.sources ? op.sources(s, cell) : [], terms = withPass(pass, found);
    const told = op.valueText ? op.valueText(s, cell) : terms.length > 0 ? summed(terms) : null;
    const inputs = step.inputs.filter((k) => k >= 0).map((k) => pass.values[k].name).join(', ');
    return {formula: tessera.ops.formulas(step).forward, substituted: told ? equation(told, pass.value(i)[cell]) : '',
      terms, total: pass.value(i)[cell], parts: [],
      note: `${step.op} of ${inputs}`};
  }

  // The record's own gradient where one step alone makes it, whose sum may be rounded otherwise than ours; else ours.
  function recorded(pass, i, cell, ours) {
    const {readers, readers_left_out: missing} = pass.values[i], gradient = pass.gradient(i);
    return readers.length === 1 && !missing && gradient ? gradient[cell] : ours;
  }

  /** What the reader {step, input} adds to the gradient of a cell: {step, input, terms, total, formula, ...}. */
  function part(pass, reader, cell) {
    const step = pass.steps[reader.step], dy = pass.gradient(step.output);
    if (!tessera.ops.has(step.op))
      return {...untold(step, NaN, tessera.ops.formulas(step).backward), input: reader.input};
    const op = tessera.ops.of(step), s = tessera.ops.contextOf(pass, step);
    if (!dy) return {step: step.index, input: reader.input, terms: [], total: 0, formula: '', substituted: '',
      note: 'No gradient flowed to what this step makes.'};
    const terms = withPass(pass, op.uses(s, reader.input, cell).map(({out, slope, factors}) => ({
      value: dy[out] * slope,
      factors: [{label: 'dy', value: dy[out], place: s.outPlace(out, true)}, ...factors],
    })));
    const total = sumOf(terms), told = (op.text && op.text(s, reader.input, cell)) || summed(terms);
    const result = recorded(pass, step.inputs[reader.input], cell, total);
    return {step: step.index, input: reader.input, terms, total, formula: tessera.ops.formulas(step).backward,
      substituted: terms.length > 0 ? equation(told, result) : short(result),
      note: `${step.op} in ${step.module || 'the model'}`};
  }

  /** How the gradient came about, with one of `parts` for each step that read the value, and why it is 0 if it is. */
  function explainGradient(pass, i, cell, withReason = true) {
    const value = pass.values[i], gradient = pass.gradient(i);
    const parts = value.readers.map((reader) => part(pass, reader, cell));
    const terms = parts.flatMap((each) => each.terms).sort(byMagnitude);
    const only = parts.length === 1 ? parts[0] : null;
    const reason = withReason ? tessera.zeros.reason(pass, i, cell) : null;
    const missing = value.readers_left_out || 0;
    if (missing > 0)
      return {formula: 'The sum of what each step that read it gives back.', substituted: '', terms,
        total: sumOf(terms), parts, note: `${missing} of the steps that read this number ` +
          `${missing === 1 ? 'was' : 'were'} left out of this page, as asked: the gradient, ` +
          `${gradient ? short(gradient[cell]) : 'none'}, has their part too, this sum has not.`};
    if (parts.length === 0 && gradient)
      return {formula: 'dL/dL = 1', substituted: '', terms, total: gradient[cell], parts,
        note: 'The pass begins here: the gradient of the loss by itself.'};
    return {formula: only ? only.formula : 'The sum of what each step that read it gives back.',
      substituted: only ? only.substituted
        : equation(added(parts.map((each) => each.total)), gradient ? gradient[cell] : sumOf(terms)),
      terms, total: sumOf(terms), parts,
      note: reason ||
        (parts.length > 1 ? `${parts.length} steps read this number; their parts add up.` : only ? only.note : '')};
  }

  /** The outputs, and their gradients, of the steps that read the value, when the cell moves by `by`. */
  function moved(pass, i, cell, by) {
    const numbers = Float64Array.from(pass.value(i)), readers = pass.values[i].readers;
    numbers[cell] += by;
    const steps = [...new Set(readers.map((reader) => reader.step))].map((index) => pass.steps[index]);
    return steps.filter((step) => pass.gradient(step.output) && tessera.ops.has(step.op)).map((step) => {
      let s = tessera.ops.contextOf(pass, step);
      for (const reader of readers) if (reader.step === step.index) s = s.withInput(reader.input, numbers);
      return {y: tessera.ops.of(step).forward(s), dy: pass.gradient(step.output)};
    });
  }

  /** The central difference of the ops that read the cell, in double: {analytic, difference, error, ok}. */
  function proveOp(pass, i, cell) {
    if (pass.values[i].readers_left_out)
      throw new Error('steps that read this number were left out of this page, as asked');
    const x = pass.value(i)[cell], by = 1e-5 * Math.max(1e-2, Math.abs(x));
    const up = moved(pass, i, cell, by), down = moved(pass, i, cell, -by);
    let difference = 0, scale = 0;
    up.forEach(({y, dy}, n) => {
      for (let o = 0; o < y.length; ++o) {
        const slope = (y[o] - down[n].y[o]) / (2 * by);
        if (Number.isNaN(slope) || slope === 0 || dy[o] === 0) continue;  // infinite scores less themselves
        difference += slope * dy[o];
        scale += Math.abs(slope * dy[o]);
      }
    });
    const analytic = pass.gradient(i)[cell];
    const against = Math.max(Math.abs(analytic), Math.abs(difference), 1e-3 * scale);
    const error = against === 0 ? 0 : Math.abs(analytic - difference) / against;
    return {analytic, difference, error, ok: error <= 1e-4, of: 'op'};
  }

  tessera.explain = {value: explainValue, gradient: explainGradient, proveOp};
})(globalThis.tessera = globalThis.tessera || {});
