// Is a layer learning? RMS of activations, gradients, weights and the next update of every layer, with verdicts.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  /** A number of a layer is remarked on where it is this many times smaller or larger than its neighbours'. */
  draw.ladderFactor = 10;
  /**
   * update : weight outside this range is remarked on: training has all but stopped, or tears the weights. The lower
   * end is for the run's highest learning rate, as the end of any schedule makes every update small.
   */
  draw.ladderRange = [1e-5, 1e-1];

  /** The rung that a module or parameter belongs to: "layers.0.blocks.3", "patch_embed", "layers.1.downsample". */
  draw.rungOf = function (path) {
    const block = path.match(/^(.*?blocks(?:_\w+)?\.\d+)(?:\.|$)/);
    if (block) return block[1];
    const parts = path.split('.');
    const numbered = parts.findIndex((part) => /^\d+$/.test(part));
    if (numbered >= 0 && /^(layers|transformers|stages)$/.test(parts[numbered - 1]))
      return parts.slice(0, numbered + 2).join('.');
    return numbered >= 0 ? parts.slice(0, numbered + 1).join('.') : parts[0];
  };

  const moduleOf = (name) => name.includes('.') ? name.slice(0, name.lastIndexOf('.')) : name;

  function meanSquare(parts) {
    let sum = 0, count = 0;
    for (const {rms, size} of parts) {
      if (rms === null || rms === undefined) continue;
      sum += rms * rms * size;
      count += size;
    }
    return count ? Math.sqrt(sum / count) : null;
  }

  // The last value that a rung made: what the next one reads.
  function outputs(pass, rungOf) {
    const last = new Map();
    for (const step of pass.steps) if (step.module) last.set(rungOf(step.module), step.output);
    for (const rung of last.keys()) {
      const named = pass.index(`${rung}.out`);
      if (named >= 0) last.set(rung, named);
    }
    return last;
  }

  /** Rows of the ladder: {label, value (of its output), activation, gradient, weight, update, ratio}. */
  draw.ladder = function (pass, fine = false) {
    const rungOf = fine ? (path) => path : draw.rungOf, rungs = new Map(), last = outputs(pass, rungOf);
    const rung = (name) => {
      if (!rungs.has(name)) rungs.set(name, {label: name, parameters: []});
      return rungs.get(name);
    };
    for (const step of pass.steps) if (step.module && !fine) rung(rungOf(step.module));
    for (const value of pass.values)
      if (value.parameter) rung(rungOf(moduleOf(value.name))).parameters.push(value);
    return [...rungs.values()].map(({label, parameters}) => {
      const value = last.has(label) ? last.get(label) : -1, gradient = value >= 0 ? pass.gradient(value) : null;
      const weights = parameters.map((p) => ({p, rms: draw.rms(pass.value(p.index)),
        size: p.shape.reduce((a, b) => a * b, 1)}));
      const updated = weights.filter(({p}) => pass.updates && pass.updates[p.name]);
      const update = meanSquare(updated.map(({p, size}) => ({size, rms: pass.updates[p.name].update_rms})));
      const before = meanSquare(updated.map(({p, size}) => ({size, rms: pass.updates[p.name].weight_rms})));
      return {label, value, parameters: parameters.map((p) => p.index),
        activation: value >= 0 ? draw.rms(pass.value(value)) : null, gradient: gradient ? draw.rms(gradient) : null,
        weight: meanSquare(weights), update, ratio: update !== null && before > 0 ? update / before : null};
    });
  };

  const kindOf = (label) => label.replace(/\d+/g, '#');

  function median(numbers) {
    const sorted = [...numbers].sort((a, b) => a - b), middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : Math.sqrt(sorted[middle - 1] * sorted[middle]);
  }

  // The median of up to two rungs on either side that are of the same kind; null where there are none.
  function neighbours(rows, i, key) {
    const kind = kindOf(rows[i].label);
    const same = rows.map((row, k) => [row, k]).filter(([row]) => kindOf(row.label) === kind);
    const at = same.findIndex(([, k]) => k === i);
    const near = same.slice(Math.max(0, at - 2), at + 3)
      .filter(([row, k]) => k !== i && row[key] > 0);
    return near.length ? median(near.map(([row]) => row[key])) : null;
  }

  const rounded = (x) => x >= 100 ? x.toExponential(0).replace('e+', 'e') : String(Number(x.toPrecision(2)));
  const subjects = {activation: 'activation', gradient: 'gradient', weight: 'weight', ratio: 'update'};

  // The highest learning rate of the run over that of the step; 0 where the step's is 0.
  function slowdown({learning_rate: rate}) {
    if (!rate) return 1;
    return rate.now > 0 ? rate.highest / rate.now : 0;
  }

  function sizeVerdict(row, slow) {
    const told = `update : weight is ${draw.short(row.ratio)}`;
    if (row.ratio > draw.ladderRange[1]) return `${told}, so large that it may not settle`;
    if (!(row.ratio * slow < draw.ladderRange[0])) return '';
    const there = slow > 1 ? `, ${draw.short(row.ratio * slow)} at the run's highest learning rate` : '';
    return `${told}${there}, so small that it all but stands still`;
  }

  function verdictsOf(rows, i, slow) {
    const row = rows[i], name = draw.rungWords(row.label), said = [];
    if (row.value >= 0 && row.gradient === null) said.push(`no gradient flows to ${name}`);
    if (row.gradient === 0) said.push(`the gradient of ${name} is exactly 0`);
    if (row.ratio === 0 && slow > 0) said.push(`${name} does not move: its update is 0`);
    for (const key of Object.keys(subjects)) {
      const usual = row[key] > 0 ? neighbours(rows, i, key) : null;
      if (!usual) continue;
      const factor = row[key] / usual, size = Math.max(factor, 1 / factor);
      if (size >= draw.ladderFactor)
        said.push(`${name}'s ${subjects[key]} is ${rounded(size)} times ${factor < 1 ? 'smaller' : 'larger'} ` +
          'than its neighbours\'');
    }
    const size = row.ratio > 0 ? sizeVerdict(row, slow) : '';
    return size ? [...said, `${name}'s ${size}`] : said;
  }

  /** Sentences on what is unusual in the rows of a pass: [{row, text}]; none for a healthy ladder. */
  draw.ladderVerdicts = (rows, pass) =>
    rows.flatMap((_, row) => verdictsOf(rows, row, slowdown(pass)).map((text) => ({row, text})));

  const strips = [['activation', 'activation', 'RMS of the output'], ['gradient', 'gradient', 'RMS of dL/doutput'],
    ['weight', 'weight', 'RMS of the parameters'], ['ratio', 'update : weight', 'the optimizer\'s next step']];

  /** "block 7" for blocks.7, "block 1 of layers.0" for layers.0.blocks.1. */
  draw.rungWords = function (label) {
    const block = label.match(/^(?:(.*)\.)?blocks\.(\d+)$/);
    return block ? `block ${block[2]}${block[1] ? ` of ${block[1]}` : ''}` : label;
  };

  const capital = (words) => words.replace(/^(\w)/, (letter) => letter.toUpperCase());

  /** The ladder of one pass, or of several on the same axes. go(place) opens a layer's output. */
  draw.ladderPanel = function (pass, {go = null, peers = [pass], titles = peers.map((peer) => peer.title)} = {}) {
    const element = draw.element('section', {class: 'draw-ladder'}), state = {fine: false};
    function build() {
      const rows = draw.ladder(pass, state.fine), verdicts = draw.ladderVerdicts(rows, pass);
      const others = peers.map((peer) => peer === pass ? rows : draw.ladder(peer, state.fine));
      const series = (key) => others.map((ladder) => rows.map((row) => {
        const same = ladder.find((other) => other.label === row.label);
        return same ? same[key] : null;
      }));
      const open = (i, strip) => {
        const row = rows[i], value = strip === 2 || row.value < 0 ? row.parameters[0] : row.value;
        if (go && value !== undefined) go({value, gradient: strip === 1, cell: 0});
      };
      const shown = strips.filter(([key]) => key !== 'ratio' || rows.some((row) => row.ratio !== null));
      element.replaceChildren(
        draw.element('div', {class: 'draw-choices'}, [draw.select('rows', [['', 'blocks'], ['fine', 'every layer']],
          state.fine ? 'fine' : '', (fine) => { state.fine = fine === 'fine'; build(); })]),
        verdictList(verdicts, rows.length),
        draw.strips({rows: rows.map((row, i) => ({label: row.label, flagged: verdicts.some((v) => v.row === i)})),
          strips: shown.map(([key, title, unit]) => ({title, unit, values: series(key), names: titles})),
          open, label: 'RMS by layer on log axes'}), peers.length > 1 ? seriesKey(titles) : '',
        draw.element('p', {class: 'draw-note', text: thresholds(pass)}));
    }
    build();
    return element;
  };

  // Which mark is whose; the numbers beside the strips are the first's.
  const seriesKey = (titles) => draw.element('p', {class: 'draw-key'}, titles.map((title, i) =>
    draw.element('span', {class: `draw-key-${i}`, text: `${i === 0 ? '\u25cf' : '\u25a0'} ${title}`})));

  function verdictList(verdicts, count) {
    if (!verdicts.length) return draw.element('p', {class: 'draw-verdict', data: {verdicts: 0},
      text: `None of the ${count} layers stands out from its neighbours.`});
    return draw.element('ul', {class: 'draw-verdicts', data: {verdicts: verdicts.length}},
      verdicts.map(({text}) => draw.element('li', {text: `${capital(text)}.`})));
  }

  // The words for what the schedule does to every update of this step.
  function rateWords(pass) {
    const slow = slowdown(pass);
    if (slow === 0) return ' The learning rate of this step is 0: nothing moves.';
    if (slow <= 1) return '';
    const {now, highest} = pass.learning_rate, times = Number(slow.toPrecision(2));
    return ` Its learning rate, ${draw.short(now)}, is ${times} times smaller than the run's highest, ` +
      `${draw.short(highest)}, and so are the updates.`;
  }

  const nextWords = (pass) => !pass.updates ? ' The next update is not in this page: it has no optimizer.'
    : pass.optimizer ? ` The next step is that of ${pass.optimizer}.${rateWords(pass)}` : rateWords(pass);

  const thresholds = (pass) => 'A layer is named where a number is ' +
    `${draw.ladderFactor} times smaller or larger than the median of the two layers of its kind on either side, ` +
    `and where its update : weight is above ${draw.short(draw.ladderRange[1])} or, at the run's highest learning ` +
    `rate, below ${draw.short(draw.ladderRange[0])}. RMS is sqrt(mean of squares).${nextWords(pass)}`;
})(globalThis.tessera = globalThis.tessera || {});
