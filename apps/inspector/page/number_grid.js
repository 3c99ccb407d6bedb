// A matrix of numbers as a table of which only the rows and columns in sight exist.
(function(tessera) {
'use strict';

const element = (...words) => tessera.draw.element(...words);
const rowHeight = 22, spare = 2;
let grids = 0;

/**
 * options: label, open(row, col), scrolled(grid). set() gives it {rows, cols, text(r, c), full(r, c), tint(r,
 * c), columnWidth, picked: [row, col] or null, rowTitle, colTitle}.
 */
function numberGrid(options) {
  const id = `grid-${++grids}`;
  const heads = element('div', {class: 'grid-heads', role: 'row'}),
        sides = element('div', {class: 'grid-sides'});
  const cells = element('div', {class: 'grid-cells', role: 'presentation'});
  const scroller = element(
      'div', {class: 'grid', role: 'grid', tabindex: '0', id},
      [element('div', {class: 'grid-corner'}), heads, sides, cells]);
  let data = null, cursor = null, drawn = '';
  // What is in sight, in pixels. It is kept, since asking the page lays it out anew at each change.
  const sight = {top: 0, left: 0, width: 0, height: 0, side: 60, head: 20};

  function look() {
    sight.top = scroller.scrollTop;
    sight.left = scroller.scrollLeft;
    sight.width = scroller.clientWidth;
    sight.height = scroller.clientHeight;
    sight.side = sides.offsetWidth || 60;
    sight.head = heads.offsetHeight;
  }

  function spans() {
    const {top, left, width, height, side} = sight, column = data.columnWidth;
    const firstRow = Math.max(0, Math.floor(top / rowHeight) - spare);
    const firstCol = Math.max(0, Math.floor(left / column) - spare);
    const lastRow = Math.min(data.rows, Math.ceil((top + height) / rowHeight) + spare);
    const lastCol = Math.min(data.cols, Math.ceil((left + width - side) / column) + spare);
    return {firstRow, firstCol, lastRow, lastCol};
  }

  const is = (place, r, c) => place !== null && place[0] === r && place[1] === c;

  function cell(r, c) {
    return element('div', {
      class: `grid-cell${is(data.picked, r, c) ? ' picked' : ''}${is(cursor, r, c) ? ' cursor' : ''}`,
      role: 'gridcell',
      id: `${id}-${r}-${c}`,
      'aria-colindex': String(c + 1),
      text: data.text(r, c),
      data: {row: r, col: c},
      'aria-selected': is(data.picked, r, c) ? 'true' : null,
      style: {left: `${c * data.columnWidth}px`, width: `${data.columnWidth}px`, background: data.tint(r, c)}
    });
  }

  const between = (from, to, make) => Array.from({length: Math.max(0, to - from)}, (_, i) => make(from + i));

  function paint(force = false) {
    if (!data) return;
    const {firstRow, lastRow, firstCol, lastCol} = spans(),
                                        key = [firstRow, lastRow, firstCol, lastCol].join(' ');
    if (!force && key === drawn) return;
    drawn = key;
    heads.replaceChildren(...between(
        firstCol, lastCol, (c) => element('span', {
                             class: 'grid-head',
                             role: 'columnheader',
                             text: String(c),
                             style: {left: `${c * data.columnWidth}px`, width: `${data.columnWidth}px`}
                           })));
    sides.replaceChildren(...between(
        firstRow, lastRow,
        (r) => element('span', {class: 'grid-side', text: String(r), style: {top: `${r * rowHeight}px`}})));
    cells.replaceChildren(...between(
        firstRow, lastRow,
        (r) => element(
            'div', {
              class: 'grid-row',
              role: 'row',
              'aria-rowindex': String(r + 1),
              style: {top: `${r * rowHeight}px`}
            },
            between(firstCol, lastCol, (c) => cell(r, c)))));
    scroller.setAttribute('aria-activedescendant', cursor ? `${id}-${cursor[0]}-${cursor[1]}` : '');
  }

  function reveal([r, c]) {
    const x = c * data.columnWidth, y = r * rowHeight;
    const width = sight.width - sight.side - data.columnWidth, height = sight.height - sight.head - rowHeight;
    const below = y < sight.top || y > sight.top + height, aside = x < sight.left || x > sight.left + width;
    if (below) scroller.scrollTop = Math.max(0, y - height / 2);
    if (aside) scroller.scrollLeft = Math.max(0, x - width / 2);
    if (below || aside) look();
  }

  function moveTo(r, c) {
    cursor = [Math.max(0, Math.min(data.rows - 1, r)), Math.max(0, Math.min(data.cols - 1, c))];
    reveal(cursor);
    paint(true);
  }

  const moves = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    PageUp: [-8, 0],
    PageDown: [8, 0],
    Home: [0, -Infinity],
    End: [0, Infinity]
  };

  function key(event) {
    if (!data || event.ctrlKey || event.altKey || event.metaKey) return;
    const [r, c] = cursor || data.picked || [0, 0];
    if (event.key === 'Enter' || (event.key === ' ' && cursor))
      options.open(r, c);
    else if (moves[event.key])
      moveTo(cursor ? r + moves[event.key][0] : r, cursor ? c + moves[event.key][1] : c);
    else
      return;
    event.preventDefault();
    event.stopPropagation();
  }

  const placeOf = (event) => {
    const target = event.target.closest('.grid-cell');
    return target ? [Number(target.dataset.row), Number(target.dataset.col)] : null;
  };
  scroller.addEventListener('keydown', key);
  scroller.addEventListener('scroll', () => {
    look();
    paint();
    options.scrolled(scroller);
  });
  scroller.addEventListener('pointerover', (event) => {
    const place = placeOf(event);
    if (place && !event.target.title) event.target.title = data.full(...place);
  });
  scroller.addEventListener('click', (event) => {
    const place = placeOf(event);
    if (place) options.open(...place);
  });
  new ResizeObserver(() => {
    const hidden = !sight.height;
    look();
    if (data && data.picked && hidden) reveal(data.picked);
    paint();
  }).observe(scroller);

  return {
    element: scroller,
    set(next) {
      const size = data && data.rows === next.rows && data.cols === next.cols;
      data = next;
      cursor = null;
      if (!size && (sight.top || sight.left)) {
        scroller.scrollTo(0, 0);
        look();
      }
      scroller.setAttribute('aria-label', next.label);
      scroller.setAttribute('aria-rowcount', String(data.rows));
      scroller.setAttribute('aria-colcount', String(data.cols));
      heads.style.width = cells.style.width = `${data.cols * data.columnWidth}px`;
      sides.style.height = cells.style.height = `${data.rows * rowHeight}px`;
      if (data.picked) reveal(data.picked);
      paint(true);
    },
    repaint: () => paint(true),
  };
}

tessera.numberGrid = numberGrid;
})(globalThis.tessera = globalThis.tessera || {});
