// Why a gradient is 0, or never came, in a sentence.
(function (tessera) {
  'use strict';

  const {coordinates, short, size} = tessera.numbers;
  const isZero = (numbers, from = 0, to = numbers.length) => {
    for (let i = from; i < to; ++i) if (numbers[i] !== 0) return false;
    return true;
  };

  /** Whether a path leads from a value to the end of the pass. */
  function reaches(pass, i) {
    const seen = new Set([i]), waiting = [i];
    const last = pass.steps.length > 0 ? pass.steps[pass.steps.length - 1].output : -1;
    while (waiting.length > 0) {
      const next = waiting.pop();
      if (next === last || pass.values[next].readers_left_out) return true;
      for (const {step} of pass.values[next].readers) {
        const out = pass.steps[step].output;
        if (!seen.has(out)) {
          seen.add(out);
          waiting.push(out);
        }
      }
    }
    return false;
  }

  /** Why the whole tensor has no gradient, or only zeros; null where it has one. */
  function ofTensor(pass, i) {
    const value = pass.values[i], gradient = pass.gradient(i);
    if (gradient === undefined) return null;
    if (value.kind === 'constant') return `${value.name} is a constant: no gradient is wanted for it.`;
    if (gradient === null)
      return reaches(pass, i) ? `No gradient flowed to ${value.name}: every step that read it gave none back.`
        : `No path leads from ${value.name} to the loss, so its gradient is nothing at all, not 0.`;
    if (!isZero(gradient)) return null;
    return `Every gradient of ${value.name} is 0. ` + (becauseOf(pass, i, 0) || '');
  }

  // Each says why a step gives 0 to a cell of its input k, or null.
  const reasons = {
    slice(s, k, cell) {
      const axis = s.attribute('axis'), first = s.attribute('first'), count = s.attribute('count');
      const n = coordinates(s.shapes[k], cell)[axis];
      if (n >= first && n < first + count) return null;
      const left = s.shapes[k][axis] - count, next = s.pass.values[s.step.output].name;
      return `Only ${count === 1 ? `entry ${first}` : `entries ${first} to ${first + count - 1}`} of axis ${axis} ` +
        `${count === 1 ? 'is' : 'are'} read on, as ${next}: the other ${left} get nothing` +
        (count === 1 && first === 0 && left > 3 ? ' (a head that reads the class token alone)' : '') + '.';
    },
    mask_diagonal: (s, k, cell) => tessera.ops.of(s.step).masks(s, cell)
      ? 'The diagonal is masked: no token attends to itself, so its score has no effect.' : null,
    relu: (s, k, cell) =>
      s.x(0)[cell] <= 0 ? 'The ReLU is off here: its input is not positive, so its slope is 0.' : null,
    max: () => 'Another entry is the largest: only that one gets the gradient.',
    dropout: (s, k, cell) => tessera.ops.of(s.step).uses(s, k, cell)[0].slope === 0
      ? 'Dropout set this element to 0.' : null,
    drop_path: (s, k, cell) => tessera.ops.of(s.step).uses(s, k, cell)[0].slope === 0
      ? 'The path was dropped for this image: only the residual goes on.' : null,
    softmax(s, k, cell) {
      const p = s.y[cell], width = s.shape[s.shape.length - 1], first = Math.floor(cell / width) * width;
      if (p < 1e-30)
        return 'The softmax gives this entry nothing (a masked or very small score), so moving it has no effect.';
      return p > 1 - 1e-7 ? 'The softmax is saturated: this entry takes all, and its slope y (1 − y) is 0.'
        : isZero(s.dy, first, first + width) ? null
          : 'All of the row’s gradients are equal: the softmax only passes on differences.';
    },
    gather: () => 'This row of the table was not looked up.',
    take: () => 'This entry was not taken.',
    multiply: (s, k, cell) => tessera.ops.of(s.step).uses(s, k, cell).every(({slope}) => slope === 0)
      ? 'Its factor is 0.' : null,
    content_decay: () => 'A gate moves only the distances to other tokens; a token without a position has none.',
  };
  const moving =
    new Set(['shifted_patches', 'shifted_copies', 'patches', 'unfold', 'concat', 'permute', 'broadcast_to']);

  function reasonOfReader(pass, {step: index, input}, cell) {
    const step = pass.steps[index], dy = pass.gradient(step.output), made = pass.values[step.output].name;
    if (!dy) return `No gradient came to ${made}, which ${step.op} made of it.`;
    if (!tessera.ops.has(step.op)) return null;
    const s = tessera.ops.contextOf(pass, step), uses = tessera.ops.of(step).uses(s, input, cell);
    const own = reasons[step.op] && reasons[step.op](s, input, cell);
    if (own) return own;
    if (uses.length === 0 && moving.has(step.op))
      return 'This number is not read on: it falls outside what is cut out.';
    if (uses.length > 0 && uses.every(({out}) => dy[out] === 0)) {
      const deeper = becauseOf(pass, step.output, uses[0].out);
      return deeper || `All gradients of ${made} that it moves are 0.`;
    }
    if (uses.length > 0 && uses.every(({slope}) => slope === 0)) return `The slope of ${step.op} is 0 here.`;
    if (uses.length === 0 && /conv/.test(step.op)) return 'This weight meets nothing but the padding around the map.';
    if (!uses.every(({out, slope}) => slope === 0 || dy[out] === 0)) return null;
    const still = uses.filter(({slope}) => slope === 0).length;
    return `Of the ${uses.length} numbers of ${made} that it could move, ${still} have a factor of 0 here ` +
      '(a masked or absent partner), and the gradients of the others are 0.';
  }

  function becauseOf(pass, i, cell) {
    const told = pass.values[i].readers.map((reader) => reasonOfReader(pass, reader, cell)).filter(Boolean);
    return told.length > 0 ? [...new Set(told)].join(' ') : null;
  }

  /** That the terms add up to nothing, with their number and size. */
  function cancelling(pass, i, cell) {
    const {terms} = tessera.explain.gradient(pass, i, cell, false);
    const total = terms.reduce((sum, term) => sum + Math.abs(term.value), 0);
    if (total === 0) return null;
    const keys = /qkv?\.bias$|\bk\.bias$/.test(pass.values[i].name)
      ? ' A bias that all keys share moves the scores of a row together, which a softmax does not notice.' : '';
    return `Its ${terms.length} terms cancel: their sizes add up to ${short(total)}, the terms to 0.${keys}`;
  }

  /** Why the gradient of one cell is 0; null where it is not. */
  function reason(pass, i, cell) {
    const gradient = pass.gradient(i);
    if (gradient === undefined) return null;
    if (gradient === null) return ofTensor(pass, i);
    if (gradient[cell] !== 0) return null;
    if (pass.values[i].readers_left_out)
      return 'Steps that read it were left out of this page, as asked, so why it is 0 cannot be told here.';
    return becauseOf(pass, i, cell) || cancelling(pass, i, cell);
  }

  /** The rows (along the last axis) whose gradients are all 0. */
  function rows(pass, i) {
    const gradient = pass.gradient(i), shape = pass.values[i].shape;
    if (!gradient || shape.length === 0) return [];
    const width = shape[shape.length - 1], found = [];
    for (let row = 0; row < size(shape) / width; ++row)
      if (isZero(gradient, row * width, (row + 1) * width)) found.push(row);
    return found;
  }

  tessera.zeros = {reason, ofTensor, rows};
})(globalThis.tessera = globalThis.tessera || {});
