// A matrix as coloured cells: crisp, read by mouse and keyboard, a click or Enter leads to the cell.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  // How much of a patch its colour fills, so that the picture is seen around it; small patches are filled.
  const chipOf = (size, ratio) => size >= 11 * ratio ? 0.72 : 1;

  /** Where a matrix would be: a hatched box that says why there is none. */
  draw.missing = (text) => draw.element('div', {class: 'draw-missing', role: 'note', text});

  function stripes(context, x, y, size, colour) {
    context.save();
    context.beginPath();
    context.rect(x, y, size, size);
    context.clip();
    context.strokeStyle = colour;
    context.lineWidth = Math.max(1, size / 10);
    context.beginPath();
    for (let i = -size; i < size; i += Math.max(3, size / 3)) {
      context.moveTo(x + i, y + size);
      context.lineTo(x + i + size, y);
    }
    context.stroke();
    context.restore();
  }

  /** A number in as many digits, three at most, as are no wider than `room`, in small type at last; else ''. */
  function fitting(context, x, room, ratio) {
    for (const [digits, type] of [[3, 11], [2, 11], [1, 11], [1, 9]]) {
      const text = draw.short(x, digits);
      context.font = `${type * ratio}px system-ui, sans-serif`;
      if (context.measureText(text).width <= room) return text;
    }
    return '';
  }

  // The number of a cell, in ink that is read on its colour and never wider than the cell.
  function writeNumber(context, box, x, scale, ratio) {
    const [red, green, blue] = scale.css(x).match(/\d+/g).map(Number);
    context.fillStyle = 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? '#16181d' : '#f7f8fa';
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillText(fitting(context, x, box.room - 4 * ratio, ratio), box.x + box.size / 2, box.y + box.size / 2);
  }

  /**
   * options: rows, cols; values and at(row, col), the place of a cell in them, or -1 for a place without a value;
   * scale; name (what a value is called); dtype; rowName, colName (texts of an index) or cellName(row, col); cell (CSS
   * pixels, made whole device pixels); picture {width, height, rgba}, seen around the cells, with lines between them;
   * shade(row, col): darkened; pick(cell, row, col), for places without a value too with pickAll; hover(row, col);
   * marked: a row, or with markCell a cell; read(text): where the value under the cursor is told, otherwise below.
   * Gives {element, set(change of options), mark(row), go(row, col), canvas}.
   */
  draw.heatmap = function (options) {
    const o = {rowName: (r) => `row ${r}`, colName: (c) => `column ${c}`, name: 'value', dtype: 'f64', cell: 4,
      cellName: (r, c) => `${o.rowName(r)} \u00b7 ${o.colName(c)}`, at: (r, c) => r * o.cols + c, label: '', marked: -1,
      outside: 'no value here', ...options};
    const cells = draw.element('canvas', {class: 'draw-cells'});
    const top = draw.element('canvas', {class: 'draw-top', tabindex: '0', role: 'application'});
    const line = draw.element('output', {class: 'draw-readout', 'aria-live': 'polite'});
    const box = draw.element('div', {class: 'draw-canvases'}, [cells, top]);
    const element = draw.element('div', {class: 'draw-heatmap'}, o.read ? [box] : [box, line]);
    let cursor = null, size = 1, ratio = 1;

    function fit() {
      ratio = globalThis.devicePixelRatio || 1;
      size = Math.max(1, Math.floor(o.cell * ratio + 1e-6));
      for (const canvas of [cells, top]) {
        canvas.width = o.cols * size;
        canvas.height = o.rows * size;
        Object.assign(canvas.style, {width: `${canvas.width / ratio}px`, height: `${canvas.height / ratio}px`});
      }
      Object.assign(box.style, {width: cells.style.width, height: cells.style.height});
      top.setAttribute('aria-label', `${o.label || o.name}, ${o.rows} by ${o.cols}; arrow keys read, Enter opens`);
    }

    // All cells as one pixel each, enlarged: as many colours as cells, whatever their size.
    function paintFlat(context, theme) {
      const small = document.createElement('canvas');
      small.width = o.cols;
      small.height = o.rows;
      const pen = small.getContext('2d'), image = pen.createImageData(o.cols, o.rows);
      for (let r = 0; r < o.rows; ++r)
        for (let c = 0; c < o.cols; ++c) {
          const at = o.at(r, c);
          if (at >= 0) o.scale.write(o.values[at], image.data, 4 * (r * o.cols + c), theme);
        }
      pen.putImageData(image, 0, 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(small, 0, 0, cells.width, cells.height);
    }

    function paintChips(context, theme) {
      context.imageSmoothingEnabled = false;
      const beneath = draw.pictureCanvas(o.lines ? o.picture : draw.greyPicture(o.picture));
      context.drawImage(beneath, 0, 0, cells.width, cells.height);
      const side = Math.max(1, Math.round(size * chipOf(size, ratio))), edge = Math.floor((size - side) / 2);
      for (let r = 0; r < o.rows; ++r)
        for (let c = 0; c < o.cols; ++c) {
          const at = o.at(r, c);
          context.fillStyle = at >= 0 ? o.scale.css(o.values[at], theme) : 'rgba(0, 0, 0, 0.62)';
          if (at >= 0) context.fillRect(c * size + edge, r * size + edge, side, side);
          else if (o.shade && o.shade(r, c)) context.fillRect(c * size, r * size, size, size);
        }
      context.fillStyle = 'rgba(255, 255, 255, 0.4)';
      for (let c = 1; o.lines && c < o.cols; ++c) context.fillRect(c * size, 0, 1, cells.height);
      for (let r = 1; o.lines && r < o.rows; ++r) context.fillRect(0, r * size, cells.width, 1);
    }

    function paintWords(context, theme) {
      const special = draw.special(theme), room = o.picture ? size * chipOf(size, ratio) : size;
      const numbers = room >= 40 * ratio;
      if (size < 5) return;
      for (let r = 0; r < o.rows; ++r)
        for (let c = 0; c < o.cols; ++c) {
          const at = o.at(r, c), striped = at < 0 ? !o.picture : !Number.isFinite(o.values[at]);
          if (striped) stripes(context, c * size, r * size, size, special.stripe);
          if (at >= 0 && numbers)
            writeNumber(context, {x: c * size, y: r * size, size, room}, o.values[at], o.scale, ratio);
        }
    }

    function paint() {
      fit();
      const context = cells.getContext('2d'), theme = draw.theme();
      context.clearRect(0, 0, cells.width, cells.height);
      if (o.picture) paintChips(context, theme);
      else paintFlat(context, theme);
      paintWords(context, theme);
      paintTop();
    }

    function frame(context, x, y, width, height) {
      for (const [colour, thick] of [['#000000', 5], ['#ffffff', 3]]) {
        context.strokeStyle = colour;
        context.lineWidth = thick * ratio * (size > 12 * ratio ? 1 : 0.4);
        context.strokeRect(x, y, width, height);
      }
    }

    function paintTop() {
      const context = top.getContext('2d');
      context.clearRect(0, 0, top.width, top.height);
      if (o.marked >= 0 && !o.markCell) frame(context, 0, o.marked * size, top.width, size);
      if (o.marked >= 0 && o.markCell)
        frame(context, o.marked % o.cols * size, Math.floor(o.marked / o.cols) * size, size, size);
      if (cursor) frame(context, cursor.col * size, cursor.row * size, size, size);
    }

    function tell() {
      const at = o.at(cursor.row, cursor.col);
      const value = at < 0 ? o.outside : `${o.name} = ${draw.exact(o.values[at], o.dtype)}`;
      const text = `${o.cellName(cursor.row, cursor.col)}: ${value}`;
      line.textContent = text;
      if (o.read) o.read(text);
    }

    function go(row, col, quiet = false) {
      cursor = {row: Math.max(0, Math.min(o.rows - 1, row)), col: Math.max(0, Math.min(o.cols - 1, col))};
      paintTop();
      tell();
      if (!quiet && o.hover) o.hover(cursor.row, cursor.col);
    }

    function pick() {
      const at = cursor ? o.at(cursor.row, cursor.col) : -1;
      if (o.pick && (at >= 0 || o.pickAll)) o.pick(at, cursor.row, cursor.col);
    }

    const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageUp: [-8, 0], PageDown: [8, 0], Home: [0, -Infinity], End: [0, Infinity]};

    function key(event) {
      if (event.key === 'Enter' || event.key === ' ') pick();
      else if (moves[event.key] && !event.ctrlKey && !event.altKey && !event.metaKey)
        go((cursor ? cursor.row : 0) + (cursor ? moves[event.key][0] : 0),
          (cursor ? cursor.col : 0) + (cursor ? moves[event.key][1] : 0));
      else return;
      event.preventDefault();
      event.stopPropagation();
    }

    const cellOf = (event) => [Math.floor(event.offsetY * ratio / size), Math.floor(event.offsetX * ratio / size)];
    top.addEventListener('keydown', key);
    top.addEventListener('pointermove', (event) => {
      const [row, col] = cellOf(event);
      if (!cursor || row !== cursor.row || col !== cursor.col) go(row, col);
    });
    top.addEventListener('pointerleave', () => {
      if (document.activeElement === top) return;
      cursor = null;
      line.textContent = '';
      paintTop();
      if (o.leave) o.leave();
    });
    top.addEventListener('click', (event) => {
      go(...cellOf(event), true);
      pick();
    });
    draw.keepPainted(element, paint);
    return {
      element, go, canvas: top, options: o,
      set(change) {
        Object.assign(o, change);
        paint();
        if (cursor) tell();
      },
      mark(place) {
        o.marked = place;
        paintTop();
      },
    };
  };
})(globalThis.tessera = globalThis.tessera || {});
