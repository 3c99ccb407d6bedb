// A lesson's pass as a graph from top to bottom: each value stands below all that it is made from.
(function(tessera) {
'use strict';

const {place: places, flow} = tessera;
const element = (...words) => tessera.draw.element(...words);

/** Level of each value: a computed one below its inputs, a leaf just above its first reader. */
function levelsOf(pass) {
  const level = new Map();
  for (const step of pass.steps) {
    const above = step.inputs.filter((i) => i >= 0 && level.has(i)).map((i) => level.get(i));
    level.set(step.output, above.length ? 1 + Math.max(...above) : 1);
  }
  for (const value of pass.values) {
    if (value.step >= 0) continue;
    const below = value.readers.map((reader) => level.get(pass.steps[reader.step].output));
    level.set(value.index, below.length ? Math.min(...below) - 1 : 0);
  }
  const rows = [];
  for (const [i, at] of level) (rows[at] = rows[at] || []).push(i);
  return rows.filter(Boolean).map((row) => sorted(pass, row));
}

// Leaves in the order in which a step reads them, then what is computed.
function sorted(pass, row) {
  const rank = (i) => {
    const value = pass.values[i], reader = value.readers[0];
    return value.step >= 0 ? value.step : reader ? reader.step + reader.input / 10 - 0.5 : -1;
  };
  return row.sort((a, b) => rank(a) - rank(b));
}

// Edges of a step that is under way carry its colour.
function wires(pass, place, cards, box) {
  const svg = (...words) => tessera.draw.svg(...words), now = places.stepAt(pass, place.time), shapes = [];
  const origin = box.getBoundingClientRect();
  for (const step of pass.steps)
    for (const i of new Set(step.inputs.filter((input) => input >= 0))) {
      const from = cards.get(i).getBoundingClientRect(), to = cards.get(step.output).getBoundingClientRect();
      const x = from.left + from.width / 2 - origin.left, y = from.bottom - origin.top;
      const toX = to.left + to.width / 2 - origin.left, toY = to.top - origin.top,
            bend = Math.max(12, (toY - y) / 2);
      const carries = now.step === step.index &&
          (!now.backward || (pass.values[i].hasGradient && flow.flows(pass, step.index)));
      shapes.push(svg('path', {
        d: `M${x} ${y}C${x} ${y + bend} ${toX} ${toY - bend} ${toX} ${toY}`,
        class: `wire${carries ? ` active ${now.backward ? 'backward' : 'forward'}` : ''}`
      }));
    }
  shapes.sort((a, b) => a.classList.contains('active') - b.classList.contains('active'));
  return svg(
      'svg', {class: 'wires', width: origin.width, height: origin.height, 'aria-hidden': 'true'}, shapes);
}

/** The graph, of which card(pass, value, place) makes the parts. Its edges are drawn when it is laid out. */
function graph(pass, place, card) {
  const cards = new Map();
  const rows = levelsOf(pass).map((row) => element('div', {class: 'graph-level'}, row.map((i) => {
                                    cards.set(i, card(pass, i, place));
                                    return cards.get(i);
                                  })));
  const few = pass.values.reduce((count, value) => count + places.size(value.shape), 0) <= 12;
  const box = element('div', {class: `graph${few ? ' few' : ''}`}, rows);
  new ResizeObserver(() => {
    const old = box.querySelector(':scope > .wires');
    if (old) old.remove();
    if (box.isConnected) box.prepend(wires(pass, place, cards, box));
  }).observe(box);
  return box;
}

tessera.lessonGraph = graph;
})(globalThis.tessera = globalThis.tessera || {});
