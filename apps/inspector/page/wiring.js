// The ops of a module as rows with the edges between them: which value goes from which row to which.
(function(tessera) {
'use strict';

const {modules, place: places} = tessera;
const most = 48;  // ops; a module with more shows the modules inside it as one row each

const isLeaf = (pass, i) => pass.values[i].step < 0;
const reads = (pass, step) => [...new Set(pass.steps[step].inputs.filter((i) => i >= 0))];

// Rows of a module's items: headings of the modules inside, ops, and modules as one row where they are too
// many.
function rowsOf(pass, node, folded, depth = 0) {
  const rows = [];
  for (const item of node.items) {
    if (typeof item === 'number') {
      rows.push({kind: 'op', step: item, depth, makes: pass.steps[item].output, reads: reads(pass, item)});
    } else if (folded) {
      rows.push({kind: 'module', node: item, depth, makes: item.out, reads: outsideReads(pass, item)});
    } else {
      if (item.steps.length > 1) rows.push({kind: 'heading', node: item, depth, reads: []});
      rows.push(...rowsOf(pass, item, folded, item.steps.length > 1 ? depth + 1 : depth));
    }
  }
  return rows;
}

/** What a module reads that is made outside of it, parameters aside. */
function outsideReads(pass, node) {
  const made = new Set(node.steps.map((step) => pass.steps[step].output));
  const found = new Set(node.steps.flatMap((step) => reads(pass, step)));
  return [...found].filter((i) => !made.has(i) && !pass.values[i].parameter);
}

// Values that come from outside stand above, those of leaves too: only parameters are named within the row.
function withSources(pass, rows) {
  const made = new Set(rows.map((row) => row.makes));
  const outside = new Set();
  for (const row of rows)
    for (const i of row.reads)
      if (!made.has(i) && !pass.values[i].parameter) outside.add(i);
  return [...[...outside].map((i) => ({kind: 'source', makes: i, reads: [], depth: 0})), ...rows];
}

// Each value's line gets the first lane that is free from where it is made to where it is read last.
function lanes(rows) {
  const at = new Map(), free = [];
  rows.forEach((row, r) => {
    if (row.makes === undefined) return;
    const readers = [];
    rows.forEach((other, k) => {
      if (k > r && other.reads.includes(row.makes)) readers.push(k);
    });
    const last = readers.length ? readers[readers.length - 1] : r;
    let lane = free.findIndex((until) => until <= r);
    if (lane < 0) lane = free.length;
    free[lane] = Math.max(last, r);
    if (!at.has(row.makes)) at.set(row.makes, {lane, row: r, readers, last});
  });
  return {at, count: Math.max(1, free.length)};
}

/** {rows, lines: value -> {lane, row, readers}, lanes: how many} of a module. */
function wiring(pass, path) {
  const node = modules.node(pass, path);
  const rows = withSources(pass, rowsOf(pass, node, node.steps.length > most && node.children.length > 0));
  const {at, count} = lanes(rows);
  return {node, rows, lines: at, lanes: count};
}

const svg = (...words) => tessera.draw.svg(...words);
const gap = 15, edge = 12;

/**
 * The lines as a drawing beside rows of these heights. A line that carries the step under way is marked.
 */
function drawing(wired, heights, current) {
  const middle = [], height = heights.reduce((y, h, r) => {
    middle[r] = y + h / 2;
    return y + h;
  }, 0);
  const width = 2 * edge + gap * (wired.lanes - 1), x = (lane) => edge + gap * lane, shapes = [];
  for (const [value, line] of wired.lines) {
    for (const reader of line.readers) {
      const target = wired.lines.get(wired.rows[reader].makes), to = target ? x(target.lane) : width - edge;
      const from = x(line.lane),
            turn = middle[reader] - Math.min(16, (middle[reader] - middle[line.row]) / 2);
      const active = current && current.row === reader;
      const path = from === to ?
          `M${from} ${middle[line.row]}V${middle[reader]}` :
          `M${from} ${middle[line.row]}V${turn}Q${from} ${middle[reader]} ${to} ${middle[reader]}`;
      shapes.push(svg('path', {
        d: path,
        class: `wire${active ? ` active ${current.backward ? 'backward' : 'forward'}` : ''}`,
        'data-value': value
      }));
    }
  }
  shapes.sort((a, b) => a.classList.contains('active') - b.classList.contains('active'));
  for (const line of wired.lines.values())
    shapes.push(svg('circle', {
      cx: x(line.lane),
      cy: middle[line.row],
      r: 4,
      class: `joint ${wired.rows[line.row].kind}${current && current.row === line.row ? ' active' : ''}`
    }));
  return svg(
      'svg', {class: 'wires', width, height, viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true'},
      shapes);
}

/** The row that shows a step, -1 for none. */
function rowOfStep(pass, wired, step) {
  return step < 0 ?
      -1 :
      wired.rows.findIndex(
          (row) => row.step === step ||
              (row.kind === 'module' && places.isBelow(pass.steps[step].module, row.node.path)));
}

tessera.wiring = {
  of: wiring,
  drawing,
  rowOfStep,
  isLeaf
};
})(globalThis.tessera = globalThis.tessera || {});
