// The zoom "model": modules as boxes in their order, with the size of what each makes and of its gradient.
(function(tessera) {
'use strict';

const {modules, flow, place: places} = tessera;
const element = (...words) => tessera.draw.element(...words);

/** The outputs of all boxes, whose sizes share one scale. */
function outputs(pass) {
  return [...modules.tree(pass).nodes.values()].map((node) => node.out).filter((out) => out >= 0);
}

// The smallest and largest RMS of the boxes as logarithms.
function range(pass, gradient) {
  const sizes = outputs(pass).map((i) => modules.rms(pass, i, gradient)).filter((x) => x > 0).map(Math.log10);
  if (!sizes.length) return null;
  return {low: Math.floor(Math.min(...sizes)), high: Math.ceil(Math.max(...sizes) + 1e-9)};
}

const ranges = new WeakMap();

function rangesOf(pass) {
  if (!tessera.frame.decoded) return {};
  if (!ranges.has(pass)) ranges.set(pass, {value: range(pass, false), gradient: range(pass, true)});
  return ranges.get(pass);
}

/** A bar on the log scale with its number, or the words for what is not there. */
function meter(pass, i, gradient, time) {
  const way = gradient ? 'gradient' : 'value';
  const why = flow.whyNot(pass, i, gradient, time);
  if (why) {
    const none = gradient && !pass.values[i].hasGradient;
    return element(
        'span',
        {class: `meter ${way} ${none ? 'none' : 'not-yet'}`, title: why, text: none ? 'none' : 'not yet'});
  }
  const size = modules.rms(pass, i, gradient), span = rangesOf(pass)[way];
  if (size === null || size === undefined) return element('span', {class: `meter ${way}`, text: '\u2026'});
  const part = size > 0 && span ? (Math.log10(size) - span.low) / Math.max(1, span.high - span.low) : 0;
  return element('span', {class: `meter ${way}`, title: `RMS ${tessera.draw.exact(size)}`}, [
    element(
        'span', {class: 'meter-bar', style: {width: `${Math.round(100 * Math.max(0, Math.min(1, part)))}%`}}),
    element('span', {class: 'meter-number', text: tessera.draw.short(size, 2)})
  ]);
}

function row(pass, {label, title, out, depth, current, open, kind}, time) {
  return element(
      'button', {
        type: 'button',
        class: `box-row ${kind}${current ? ' current' : ''}`,
        title,
        data: {path: title},
        style: {paddingLeft: `${0.5 + 0.8 * depth}em`},
        on: {click: open}
      },
      [
        element('span', {class: 'box-name', text: label}), meter(pass, out, false, time),
        meter(pass, out, true, time)
      ]);
}

const showNode = (pass, node, depth, time, now) =>
    row(pass, {
      label: node.label,
      title: node.path,
      out: node.out,
      depth,
      kind: depth ? 'inner' : 'outer',
      current: now >= 0 && places.isBelow(pass.steps[now].module, node.path),
      open: () => tessera.frame.go({zoom: 'block', module: node.path})
    },
        time);

function showOp(pass, step, time, now) {
  const {op, output} = pass.steps[step];
  return element('div', {class: 'box op'}, [row(
                                               pass, {
                                                 label: op,
                                                 title: pass.values[output].name,
                                                 out: output,
                                                 depth: 0,
                                                 kind: 'outer',
                                                 current: now === step,
                                                 open: () => tessera.frame.go({zoom: 'op', step})
                                               },
                                               time)]);
}

// A module with those inside it, two deep: what is deeper is one zoom further in.
function box(pass, node, time, now) {
  const rows = [showNode(pass, node, 0, time, now)];
  const inside = (parent, depth) => {
    for (const child of parent.children) {
      rows.push(showNode(pass, child, depth, time, now));
      if (depth < 2) inside(child, depth + 1);
    }
  };
  inside(node, 1);
  return element('div', {class: 'box', role: 'group', 'aria-label': node.path}, rows);
}

function scaleWords(pass) {
  const {value, gradient} = rangesOf(pass), words = (span) => `1e${span.low} to 1e${span.high}`;
  return !value ? '' :
                  `Bars: RMS of the last value a module makes (${words(value)}) and of its gradient` +
          `${gradient ? ` (${words(gradient)})` : ''}, on log scales.`;
}

function render(container, place, pass) {
  const now = places.stepAt(pass, place.time);
  container.replaceChildren(
      element(
          'p', {class: 'note'},
          [
            element('span', {class: 'key value', text: 'value'}),
            element('span', {class: 'key gradient', text: 'gradient'}),
            `${scaleWords(pass)} Click a box to go in.`
          ]),
      element(
          'div', {class: 'boxes'},
          modules.tree(pass).root.items.map(
              (item) => typeof item === 'number' ? showOp(pass, item, place.time, now.step) :
                                                   box(pass, item, place.time, now.step))));
}

tessera.zoom.own.model = {
  title: () => 'modules',
  render
};
tessera.modelView = {meter};
})(globalThis.tessera = globalThis.tessera || {});
