(function (tessera) {
  'use strict';

  // The page's passes as objects, made from the index in the file; a worker fills in their numbers.

  const isName = {inf: Infinity, '-inf': -Infinity, nan: NaN};
  const numberOf = (x) => typeof x === 'string' && x in isName ? isName[x] : x;

  function readersOf(pass) {
    const readers = pass.values.map(() => []);
    pass.steps.forEach((step) => step.inputs.forEach((i, input) => {
      if (i >= 0) readers[i].push({step: step.index, input});
    }));
    return readers;
  }

  function stepOf(row, index) {
    const attributes = {};
    for (const [name, value] of Object.entries(row.attributes)) attributes[name] = numberOf(value);
    return Object.assign({}, row, {index, attributes});
  }

  /**
   * A pass of the page without its numbers. value(i) and gradient(i) are undefined until they are decoded;
   * gradient(i) is null where none flowed.
   */
  function passOf(row) {
    const values = [], gradients = [], places = new Map();
    const pass = Object.assign({}, row, {
      steps: row.steps.map(stepOf),
      values: row.values.map((value, index) => Object.assign({}, value, {
        index,
        hasGradient: value.gradient !== null,
        step: -1,
        parameter: value.kind === 'leaf' && value.name !== 'input',
      })),
      loss: numberOf(row.loss),
      picture: null,
      value: (i) => values[i],
      gradient: (i) => gradients[i],
      index: (name) => places.has(name) ? places.get(name) : -1,
      decoded: false,
    });
    readersOf(pass).forEach((readers, i) => { pass.values[i].readers = readers; });
    for (const step of pass.steps) pass.values[step.output].step = step.index;
    for (const value of pass.values) {
      if (!value.hasGradient) gradients[value.index] = null;
      for (const name of [value.name, ...value.aliases]) if (!places.has(name)) places.set(name, value.index);
    }
    return {pass, set: (i, gradient, numbers) => { (gradient ? gradients : values)[i] = numbers; }};
  }

  function pictureOf({width, height}, rgb) {
    const rgba = new Uint8ClampedArray(width * height * 4).fill(255);
    for (let i = 0; i < width * height; ++i) rgba.set(rgb.subarray(3 * i, 3 * i + 3), 4 * i);
    return {width, height, rgba};
  }

  const noWorker = new Error('the browser allows no worker');

  /**
   * What the worker is asked: the rows of all passes, and the container's text. It tells, in this order, of
   * each picture, each value and each gradient: tell({pass, picture} or {pass, i, gradient, numbers}).
   */
  async function decodeAll(tessera, rows, text, tell) {
    const data = tessera.decode.bytesOfText(text);
    for (let pass = 0; pass < rows.length; ++pass) {
      if (rows[pass].picture)
        tell({pass, picture: await tessera.decode.storedBytes(data, rows[pass].picture.data, 'u8', 'picture')});
      await tessera.decode.decode(rows[pass].known, rows[pass].values, data,
        (i, gradient, numbers) => tell({pass, i, gradient, numbers}));
    }
  }

  /** decodeAll() in a worker made of the parts that it needs; rejects with noWorker where the browser allows none. */
  function decodeInWorker(rows, text, tell) {
    const parts = tessera.workerParts.map((part) => `(${part})(tessera);`).join('\n');
    const source = `'use strict'; const tessera = {}; ${parts}\n${decodeAll}
      onmessage = ({data: {rows, text}}) => decodeAll(tessera, rows, text, postMessage).then(
        () => postMessage({done: true}), (error) => postMessage({failed: error.message}));`;
    return new Promise((resolve, reject) => {
      let began = false;
      const url = URL.createObjectURL(new Blob([source], {type: 'text/javascript'}));
      let worker;
      try {
        worker = new Worker(url);
      } catch {
        throw noWorker;
      }
      const end = (settle) => {
        worker.terminate();
        URL.revokeObjectURL(url);
        settle();
      };
      worker.onerror = (event) =>
        end(() => reject(began ? new Error(event.message || 'the worker ended') : noWorker));
      worker.onmessage = ({data}) => {
        began = true;
        if (data.done) end(resolve);
        else if (data.failed) end(() => reject(new Error(data.failed)));
        else tell(data);
      };
      worker.postMessage({rows, text});
    });
  }

  /** decodeAll() in the page itself, which answers clicks in between. */
  function decodeHere(rows, text, tell) {
    let rested = performance.now();
    return decodeAll(tessera, rows, text, (found) => {
      tell(found);
      if (performance.now() - rested < 20) return null;
      return new Promise((resolve) => setTimeout(() => {
        rested = performance.now();
        resolve();
      }, 0));
    });
  }

  /** {page, decode}: the page object of this index without numbers, and what fills them in from the data. */
  function read(index) {
    const opened = index.passes.map(passOf);
    const page = Object.assign({}, index, {passes: opened.map((each) => each.pass)});
    page.comparisons = page.passes.filter((pass) => pass.role === 'with');
    const rows = index.passes.map(({values, picture}, p) => {
      const {steps, values: described} = page.passes[p];
      return {values, picture, known: {steps, values: described}};
    });
    const decode = async (text, progress, inWorker) => {
      const all = rows.reduce((sum, row) => sum + row.values.length * 2, 0);
      let count = 0;
      const tell = ({pass, picture, i, gradient, numbers}) => {
        if (picture) page.passes[pass].picture = pictureOf(rows[pass].picture, picture);
        else opened[pass].set(i, gradient, numbers);
        progress(page.passes[pass], ++count / all);
      };
      await (inWorker ? decodeInWorker(rows, text, tell) : Promise.reject(noWorker)).catch((error) => {
        if (error !== noWorker) throw error;
        return decodeHere(rows, text, tell);
      });
      for (const pass of page.passes) pass.decoded = true;
      return page;
    };
    return {page, decode};
  }

  let first = null;

  /** The page object at once, before its numbers are decoded. */
  function page() {
    if (!first) {
      first = read(JSON.parse(document.getElementById('pass-index').textContent));
      tessera.catalog = first.page.catalog;
      tessera.page = first.page;
    }
    return first.page;
  }

  /** The container's text. A server that names another encoding has spoilt the one in the document. */
  async function dataText() {
    if (document.characterSet === 'windows-1252') return document.getElementById('pass-data').textContent;
    const bytes = await (await fetch(location.href)).arrayBuffer();
    const text = new TextDecoder('windows-1252').decode(bytes), start = 'id="pass-' + 'data">';
    const from = text.lastIndexOf(start) + start.length;
    return text.slice(from, text.indexOf('<' + '/script>', from));
  }

  let opening = null;

  /** Resolves with the page object when all numbers are decoded; `progress(pass, part)` is told on the way. */
  function open(progress = () => {}) {
    page();
    opening = opening || (async () => {
      if (document.readyState === 'loading')
        await new Promise((resolve) => document.addEventListener('DOMContentLoaded', resolve, {once: true}));
      await new Promise((resolve) => {  // behind the first paint, which a hidden page does not have
        requestAnimationFrame(() => setTimeout(resolve, 0));
        setTimeout(resolve, 200);
      });
      return first.decode(await dataText(), progress, true);
    })();
    return opening;
  }

  tessera.store = {page, open, read};
})(globalThis.tessera = globalThis.tessera || {});
