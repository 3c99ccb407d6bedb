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

const margin = 6, lane = 5;  // pixels between an edge and a card, and between two edges beside each other

/** The cards' boxes inside the graph, by value, and the lines that they stand in, each from left to right. */
function layoutOf(cards, origin) {
  const boxes = new Map(), lines = new Map();
  for (const [i, card] of cards) {
    const {left, right, top, bottom} = card.getBoundingClientRect(), {left: x, top: y} = origin;
    const box = {left: left - x, right: right - x, top: top - y, bottom: bottom - y};
    boxes.set(i, box);
    const at = Math.round(box.top), line = lines.get(at) || {top: box.top, bottom: box.bottom, boxes: [], taken: []};
    line.boxes.push(box);
    line.bottom = Math.max(line.bottom, box.bottom);
    lines.set(at, line);
  }
  for (const line of lines.values()) line.boxes.sort((a, b) => a.left - b.left);
  return {boxes, lines: [...lines.values()].sort((a, b) => a.top - b.top)};
}

// The place nearest to x where an edge goes between the cards of a line, beside those of other values.
function passage(line, x, value, width) {
  const edges = [0, ...line.boxes.flatMap((box) => [box.left, box.right]), width];
  let best = null;
  for (let k = 0; k < edges.length; k += 2)
    for (let at of [x, ...line.taken.flatMap((taken) => [taken.x - lane, taken.x + lane])]) {
      const from = edges[k] + margin, to = edges[k + 1] - margin;
      if (from > to) continue;
      at = Math.max(from, Math.min(to, at));
      const free = line.taken.every((taken) => taken.value === value || Math.abs(taken.x - at) >= lane);
      const cost = Math.abs(at - x) + (free ? 0 : 1000);
      if (!best || cost < best.cost) best = {cost, x: at};
    }
  const chosen = best ? best.x : x;
  line.taken.push({x: chosen, value});
  return chosen;
}

/** The edge from a value's card down to another, around all that stand between them. */
function wirePath({boxes, lines}, value, output, width) {
  const from = boxes.get(value), to = boxes.get(output), end = (to.left + to.right) / 2;
  let x = (from.left + from.right) / 2, y = from.bottom, path = `M${x} ${y}`;
  const curve = (toX, toY) => {
    const bend = (toY - y) / 2;
    path += `C${x} ${y + bend} ${toX} ${toY - bend} ${toX} ${toY}`;
    [x, y] = [toX, toY];
  };
  for (const line of lines) {
    if (line.top < from.bottom - 1 || line.bottom > to.top + 1) continue;
    curve(passage(line, x + (end - x) * (line.top - y) / Math.max(1, to.top - y), value, width), line.top);
    y = line.bottom;
    path += `V${y}`;
  }
  curve(end, to.top);
  return path;
}

// Edges of a step that is under way carry its colour.
function wires(pass, place, cards, box) {
  const svg = (...words) => tessera.draw.svg(...words), now = places.stepAt(pass, place.time), shapes = [];
  const origin = box.getBoundingClientRect(), layout = layoutOf(cards, origin);
  for (const step of pass.steps)
    for (const i of new Set(step.inputs.filter((input) => input >= 0))) {
      const carries = now.step === step.index &&
          (!now.backward || (pass.values[i].hasGradient && flow.flows(pass, step.index)));
      shapes.push(svg('path', {
        d: wirePath(layout, i, step.output, origin.width),
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
