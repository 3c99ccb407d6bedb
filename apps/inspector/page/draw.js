// What every drawing needs: elements whose text is never markup, numbers as text, dark or light, redrawing.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};
  const svgNamespace = 'http://www.w3.org/2000/svg';

  /** An element; `properties` are attributes, but for text, on (handlers), data (dataset) and style. */
  draw.element = function (tag, properties = {}, children = [], namespace = null) {
    const element = namespace ? document.createElementNS(namespace, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (value === null || value === undefined || value === false) continue;
      if (name === 'text') element.textContent = value;
      else if (name === 'on') for (const event of Object.keys(value)) element.addEventListener(event, value[event]);
      else if (name === 'data') Object.assign(element.dataset, value);
      else if (name === 'style') Object.assign(element.style, value);
      else element.setAttribute(name, value === true ? '' : value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  };

  draw.svg = (tag, properties, children) => draw.element(tag, properties, children, svgNamespace);

  /** A list to choose from: options are [value, text]; change gets the value. */
  draw.select = function (label, options, chosen, change) {
    const select = draw.element('select', {'aria-label': label, on: {change: () => change(select.value)}},
      options.map(([value, text]) => draw.element('option', {value, text})));
    select.value = String(chosen);
    return draw.element('label', {class: 'draw-choice'}, [draw.element('span', {text: label}), select]);
  };

  /** A number in at most `digits` figures, to be read in a legend; exact() is for values. */
  draw.short = function (x, digits = 3) {
    if (!Number.isFinite(x)) return draw.exact(x);
    if (x === 0) return '0';
    const rounded = Number(x.toPrecision(digits)), size = Math.abs(rounded);
    const text = size >= 1e-3 && size < 1e5 ? String(rounded)
      : x.toExponential(digits - 1).replace(/\.?0+e/, 'e').replace('e+', 'e');
    return text.replace(/-/g, '\u2212');
  };

  /** The shortest text that reads back as the same number of its type. */
  draw.exact = function (x, dtype = 'f64') {
    if (Number.isNaN(x)) return 'not a number';
    if (!Number.isFinite(x)) return x > 0 ? '\u221e' : '\u2212\u221e';
    let text = String(x);
    for (let digits = 1; dtype === 'f32' && digits <= 9; ++digits) {
      const shorter = String(Number(x.toPrecision(digits)));
      if (Math.fround(Number(shorter)) === x) {
        text = shorter;
        break;
      }
    }
    if (x !== 0 && Math.abs(x) < 1e-3) text = Number(text).toExponential();
    return (Object.is(x, -0) ? '-0' : text).replace(/-/g, '\u2212');
  };

  draw.shapeText = (shape) => `[${shape.join(', ')}]`;

  /** sqrt(mean(x^2)) over what is finite; null for nothing. */
  draw.rms = function (values) {
    let sum = 0, count = 0;
    for (let i = 0; values && i < values.length; ++i) {
      if (!Number.isFinite(values[i])) continue;
      sum += values[i] * values[i];
      ++count;
    }
    return count ? Math.sqrt(sum / count) : null;
  };

  let printing = false;

  /** 'dark' or 'light': the page's own choice, else the system's; paper is light. */
  draw.theme = function () {
    if (printing) return 'light';
    const chosen = document.documentElement.dataset.theme;
    if (chosen === 'dark' || chosen === 'light') return chosen;
    return globalThis.matchMedia && matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  };

  const paints = new WeakMap();  // element -> what draws it again
  let drawn = [];                // weak references: a drawing that nobody holds is let go

  /** Has `paint` called now, and again whenever dark and light change. */
  draw.keepPainted = function (element, paint) {
    paints.set(element, paint);
    drawn.push(new WeakRef(element));
    paint();
  };

  draw.repaint = function () {
    drawn = drawn.filter((reference) => reference.deref());
    for (const reference of drawn) {
      const element = reference.deref();
      if (element) paints.get(element)();
    }
  };

  /** A state that several drawings share: set() merges and tells all of them what has changed. */
  draw.shared = function (values) {
    const listeners = [];
    return {
      values,
      subscribe: (listener) => listeners.push(listener),
      set(wanted) {
        const news = Object.entries(wanted).filter(([key, value]) => !Object.is(values[key], value));
        if (!news.length) return;
        const change = Object.fromEntries(news);
        Object.assign(values, change);
        for (const listener of listeners) listener(change);
      },
    };
  };

  if (globalThis.document) {
    if (globalThis.matchMedia) {
      matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw.repaint);
      matchMedia('print').addEventListener('change', (query) => {
        printing = query.matches;
        draw.repaint();
      });
    }
    new MutationObserver(draw.repaint)
      .observe(document.documentElement, {attributes: true, attributeFilter: ['data-theme']});
  }
})(globalThis.tessera = globalThis.tessera || {});
