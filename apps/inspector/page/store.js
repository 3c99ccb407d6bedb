(function (tessera) {
  'use strict';

  // Reads the page's passes back from the file: the index is JSON, the numbers are compressed blocks in a text
  // (container.h says how it is written).

  const escapeByte = 0x1b;
  // What windows-1252 makes of the bytes 0x80 to 0x9f; five of them stay as they are.
  const upper = [0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152,
    0x8d, 0x17d, 0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a,
    0x153, 0x9d, 0x17e, 0x178];
  const byteOf = new Map(upper.map((code, i) => [code, 0x80 + i]));

  /** The bytes that in_html() of container.cpp wrote as this text. */
  function bytesOfText(text) {
    const bytes = new Uint8Array(text.length);
    let count = 0;
    for (let i = 0; i < text.length; ++i) {
      const code = text.charCodeAt(i);
      if (code === escapeByte) bytes[count++] = text.charCodeAt(++i) - 64;
      else bytes[count++] = code < 256 ? code : byteOf.get(code);
    }
    return bytes.subarray(0, count);
  }

  const crcTable = Uint32Array.from({length: 256}, (_, i) => {
    for (let bit = 0; bit < 8; ++bit) i = i & 1 ? 0xedb88320 ^ (i >>> 1) : i >>> 1;
    return i;
  });

  /** CRC-32 as zlib has it. */
  function checksum(bytes) {
    let sum = 0xffffffff;
    for (let i = 0; i < bytes.length; ++i) sum = crcTable[(sum ^ bytes[i]) & 0xff] ^ (sum >>> 8);
    return (sum ^ 0xffffffff) >>> 0;
  }

  async function inflated(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  function outOfPlanes(sorted, planes) {
    const count = sorted.length / planes, bytes = new Uint8Array(sorted.length);
    for (let plane = 0; plane < planes; ++plane)
      for (let i = 0, from = plane * count; i < count; ++i) bytes[i * planes + plane] = sorted[from + i];
    return bytes;
  }

  const bytesOfType = {f32: 4, f64: 8, bf16: 2, i64: 8, u8: 1};

  /** A tensor's little-endian bytes as numbers. */
  function numbersOf(bytes, dtype) {
    if (dtype === 'f32') return new Float32Array(bytes.buffer, 0, bytes.length / 4);
    if (dtype === 'f64') return new Float64Array(bytes.buffer, 0, bytes.length / 8);
    if (dtype === 'i64') return Float64Array.from(new BigInt64Array(bytes.buffer, 0, bytes.length / 8), Number);
    if (dtype === 'u8') return Float64Array.from(bytes);
    const halves = new Uint16Array(bytes.buffer, 0, bytes.length / 2);
    return new Float32Array(Uint32Array.from(halves, (bits) => bits << 16).buffer);
  }

  /** The bytes of the block [code, at, bytes, checksum]; `what` names it in an error. */
  async function readBlock(data, block, planes, what) {
    const [, at, count, expected] = block;
    const bytes = outOfPlanes(await inflated(data.subarray(at, at + count)), planes);
    if (checksum(bytes) !== expected) throw new Error(`${what}: the page's file is damaged (checksum)`);
    return bytes;
  }

  function readersOf(pass) {
    const readers = pass.values.map(() => []);
    pass.steps.forEach((step) => step.inputs.forEach((i, input) => {
      if (i >= 0) readers[i].push({step: step.index, input});
    }));
    return readers;
  }

  /**
   * A pass of the page without its numbers. value(i) and gradient(i) are undefined until they are decoded;
   * gradient(i) is null where none flowed.
   */
  function passOf(row) {
    const values = [], gradients = [], places = new Map();
    const pass = Object.assign({}, row, {
      steps: row.steps.map((step, index) => Object.assign({index}, step)),
      values: row.values.map((value, index) => Object.assign({}, value, {
        index,
        hasGradient: value.gradient !== null,
        step: -1,
        parameter: value.kind === 'leaf' && value.name !== 'input',
      })),
      loss: Number(row.loss === 'inf' ? Infinity : row.loss === '-inf' ? -Infinity : row.loss),
      picture: null,
      value: (i) => values[i],
      gradient: (i) => gradients[i],
      index: (name) => places.has(name) ? places.get(name) : -1,
      decoded: false,
    });
    readersOf(pass).forEach((readers, i) => { pass.values[i].readers = readers; });
    for (const step of pass.steps) pass.values[step.output].step = step.index;
    for (const value of pass.values)
      for (const name of [value.name, ...value.aliases]) if (!places.has(name)) places.set(name, value.index);
    return {pass, values, gradients};
  }

  async function decodePicture(pass, row, data) {
    if (!row) return;
    const rgb = await readBlock(data, row.data, 1, 'picture');
    const rgba = new Uint8ClampedArray(row.width * row.height * 4).fill(255);
    for (let i = 0; i < row.width * row.height; ++i) rgba.set(rgb.subarray(3 * i, 3 * i + 3), 4 * i);
    pass.picture = {width: row.width, height: row.height, rgba};
  }

  async function decodePass({pass, values, gradients}, row, data, progress) {
    await decodePicture(pass, row.picture, data);
    for (let i = 0; i < row.values.length; ++i) {
      const {name, dtype, value, gradient} = row.values[i];
      const read = async (block, what) =>
        numbersOf(await readBlock(data, block, bytesOfType[dtype], what), dtype);
      values[i] = await read(value, name);
      gradients[i] = gradient === null ? null : await read(gradient, `gradient of ${name}`);
      progress(pass, (i + 1) / row.values.length);
    }
    pass.decoded = true;
  }

  /** {page, decode}: the page object of this index without numbers, and what fills them in from the data. */
  function read(index) {
    const opened = index.passes.map(passOf);
    const page = Object.assign({}, index, {passes: opened.map((each) => each.pass)});
    page.comparisons = page.passes.filter((pass) => pass.role === 'with');
    const decode = async (dataText, progress) => {
      const data = bytesOfText(dataText);
      for (let p = 0; p < opened.length; ++p) await decodePass(opened[p], index.passes[p], data, progress);
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

  let opening = null;

  /** Resolves with the page object when all numbers are decoded; `progress(pass, part)` is told on the way. */
  function open(progress = () => {}) {
    page();
    opening = opening || (async () => {
      if (document.readyState === 'loading')
        await new Promise((resolve) => document.addEventListener('DOMContentLoaded', resolve, {once: true}));
      await new Promise((resolve) => setTimeout(resolve, 0));
      const element = document.getElementById('pass-data');
      return first.decode(element.textContent, progress);
    })();
    return opening;
  }

  tessera.store = {page, open, read};
})(globalThis.tessera = globalThis.tessera || {});
