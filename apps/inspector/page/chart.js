// Charts with axes: strips of a number by layer on log axes, and dots by depth.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  const rowHeight = 22, top = 40;
  const marks = ['draw-series-0', 'draw-series-1', 'draw-series-2'];

  const text = (x, y, words, properties = {}) => draw.svg('text', {x, y, text: words, ...properties});

  /** Decades from below the smallest to above the largest of positive numbers; null for none. */
  draw.decades = function (numbers) {
    const positive = numbers.filter((x) => x > 0 && x < Infinity);
    if (!positive.length) return null;
    const low = Math.floor(Math.log10(Math.min(...positive))), high = Math.ceil(Math.log10(Math.max(...positive)));
    return {low, high: high > low ? high : low + 1};
  };

  // One dot a layer and series, joined; a number that has no logarithm is told at the left edge in words.
  function strip({title, unit, values, names}, {x, width, rows, open, index}) {
    const range = draw.decades(values.flat());
    const parts = [text(x, 14, title, {class: 'draw-strip-title'}), text(x, 28, unit, {class: 'draw-axis'})];
    if (!range) return [...parts, text(x, top + 14, 'none', {class: 'draw-axis'})];
    const place = (value) => x + (Math.log10(value) - range.low) / (range.high - range.low) * width;
    const bottom = top + rows.length * rowHeight, every = Math.ceil((range.high - range.low) / 4);
    for (let k = range.low; k <= range.high; k += 1) {
      parts.push(draw.svg('line', {class: 'draw-grid', x1: place(10 ** k), x2: place(10 ** k), y1: top, y2: bottom}));
      if ((k - range.low) % every === 0)
        parts.push(text(place(10 ** k), bottom + 13, draw.short(10 ** k, 1),
          {class: 'draw-axis', 'text-anchor': 'middle'}));
    }
    values.forEach((series, s) => {
      const points = series.map((value, i) => value > 0 && value < Infinity
        ? [place(value), top + (i + 0.5) * rowHeight] : null);
      for (let i = 1; i < points.length; ++i)
        if (points[i] && points[i - 1])
          parts.push(draw.svg('line', {class: `draw-line ${marks[s]}`, x1: points[i - 1][0], y1: points[i - 1][1],
            x2: points[i][0], y2: points[i][1]}));
      points.forEach((point, i) => {
        const said = series[i] === null ? 'none' : draw.exact(series[i]);
        const words = `${names && names.length > 1 ? `${names[s]}, ` : ''}${rows[i].label}: ${title} ${said}`;
        const y = top + (i + 0.5) * rowHeight;
        if (!point && s > 0) return;
        if (!point) {
          parts.push(text(x + width * 0.5, y + 4, series[i] === null ? 'none' : draw.short(series[i]),
            {class: 'draw-axis', 'text-anchor': 'middle'}));
          return;
        }
        const dot = s === 0 ? draw.svg('circle', {cx: point[0], cy: y, r: 4.5})
          : draw.svg('rect', {x: point[0] - 4, y: y - 4, width: 8, height: 8});
        dot.setAttribute('class', `draw-dot ${marks[s]}`);
        dot.append(draw.svg('title', {text: words}));
        if (open) dot.addEventListener('click', () => open(i, index, s));
        parts.push(dot);
      });
    });
    values[0].forEach((value, i) => parts.push(text(x + width + 8, top + (i + 0.5) * rowHeight + 4,
      value === null ? '' : draw.short(value), {class: 'draw-number'})));
    return parts;
  }

  /** The width of the widest of these words as a flagged row's name has them, in CSS pixels. */
  function widthOf(words) {
    const pen = document.createElement('canvas').getContext('2d');
    pen.font = `700 12px ${getComputedStyle(document.body).fontFamily}`;
    return Math.max(0, ...words.map((each) => pen.measureText(each).width));
  }

  /**
   * Strips beside each other that share their rows. rows: [{label, flagged}]; strips: [{title, unit,
   * values: [series][row], names}]; open(row, strip, series) on a click.
   */
  draw.strips = function ({rows, strips, open = null, label = ''}) {
    const left = Math.ceil(widthOf(rows.map((row) => row.label))) + 20;
    const width = 110, gap = 84, height = top + rows.length * rowHeight + 22;
    const parts = rows.map((row, i) => {
      const name = text(left - 12, top + (i + 0.5) * rowHeight + 4, row.label,
        {class: row.flagged ? 'draw-row-name draw-flagged' : 'draw-row-name', 'text-anchor': 'end',
          tabindex: open ? '0' : null, role: open ? 'link' : null});
      if (open) {
        name.addEventListener('click', () => open(i, 0, 0));
        name.addEventListener('keydown', (event) => { if (event.key === 'Enter') open(i, 0, 0); });
      }
      return name;
    });
    rows.forEach((row, i) => {
      if (row.flagged) parts.unshift(draw.svg('rect', {class: 'draw-flag', x: 0, y: top + i * rowHeight,
        width: left + strips.length * (width + gap), height: rowHeight}));
    });
    strips.forEach((one, k) => parts.push(...strip(one, {x: left + k * (width + gap), width, rows, open, index: k})));
    const total = left + strips.length * (width + gap);
    return draw.element('div', {class: 'draw-scroll'}, [draw.svg('svg', {class: 'draw-chart', width: total, height,
      viewBox: `0 0 ${total} ${height}`, role: 'img', 'aria-label': label}, parts)]);
  };

  /**
   * Dots over columns: columns: names; dots: [{column, y, words, series}]; lines: [{y, words}] across; yTitle.
   * Dots of a column are spread so that all are seen. open(dot) on a click.
   */
  draw.dots = function ({columns, dots, lines = [], yTitle = '', label = '', open = null}) {
    const values = [...dots.map((dot) => dot.y), ...lines.map((line) => line.y)].filter(Number.isFinite);
    const low = Math.min(...values), high = Math.max(...values), pad = (high - low || Math.abs(high) || 1) * 0.08;
    const height = 240, width = Math.max(320, 52 * columns.length), left = 64, bottom = 40;
    const y = (value) => 16 + (high + pad - value) / (high - low + 2 * pad) * (height - 16 - bottom);
    const x = (column) => left + (column + 0.5) * (width - left) / columns.length;
    const parts = [text(0, 12, yTitle, {class: 'draw-axis'})];
    for (let k = 0; k <= 4; ++k) {
      const value = low + k * (high - low) / 4;
      parts.push(draw.svg('line', {class: 'draw-grid', x1: left, x2: width, y1: y(value), y2: y(value)}),
        text(left - 8, y(value) + 4, draw.short(value), {class: 'draw-axis', 'text-anchor': 'end'}));
    }
    columns.forEach((name, i) => parts.push(
      text(x(i), height - 20, name, {class: 'draw-axis', 'text-anchor': 'middle'})));
    for (const line of lines)
      parts.push(draw.svg('line', {class: 'draw-reference', x1: left, x2: width, y1: y(line.y), y2: y(line.y)}),
        text(width + 6, y(line.y) + 4, line.words, {class: 'draw-axis'}));
    const seen = columns.map(() => 0), many = columns.map((_, c) => dots.filter((dot) => dot.column === c).length);
    for (const dot of dots) {
      const spread = (seen[dot.column]++ - (many[dot.column] - 1) / 2) * Math.min(6, 34 / many[dot.column]);
      const circle = draw.svg('circle', {class: `draw-dot ${marks[dot.series || 0]}`, cx: x(dot.column) + spread,
        cy: y(dot.y), r: 4}, [draw.svg('title', {text: dot.words})]);
      if (open) circle.addEventListener('click', () => open(dot));
      parts.push(circle);
    }
    return draw.element('div', {class: 'draw-scroll'}, [draw.svg('svg', {class: 'draw-chart', width: width + 130,
      height, viewBox: `0 0 ${width + 130} ${height}`, role: 'img', 'aria-label': label}, parts)]);
  };
})(globalThis.tessera = globalThis.tessera || {});
