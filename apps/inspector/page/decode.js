(function (tessera) {
  'use strict';

  // Reads the numbers of a pass from the page's container (apps/inspector/container.h says how they lie there).
  // Runs in the page, in a worker and in node.

  function decoder(tessera) {
    const escapeByte = 0x1b;
    // What windows-1252 makes of the bytes 0x80 to 0x9f.
    const upper = [0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039,
      0x152, 0x8d, 0x17d, 0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122,
      0x161, 0x203a, 0x153, 0x9d, 0x17e, 0x178];
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
      let sum = -1;
      for (let i = 0; i < bytes.length; ++i) sum = crcTable[(sum ^ bytes[i]) & 0xff] ^ (sum >>> 8);
      return (sum ^ -1) >>> 0;
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

    /** Floats of planes: the exponents, then sign and fraction from the highest byte on. */
    function outOfFloatPlanes(sorted) {
      const count = sorted.length / 4, bits = new Uint32Array(count);
      for (let i = 0; i < count; ++i) {
        const high = sorted[count + i];
        bits[i] = ((high >> 7) << 31) | (sorted[i] << 23) | ((high & 127) << 16) | (sorted[2 * count + i] << 8) |
          sorted[3 * count + i];
      }
      return new Uint8Array(bits.buffer);
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

    function verify(bytes, expected, what) {
      if (checksum(bytes) !== expected) throw new Error(`${what}: the numbers read are not those written (checksum)`);
      return bytes;
    }

    /** The bytes of a stored block; `what` names it in an error. */
    async function storedBytes(data, [code, at, count, expected], dtype, what) {
      const sorted = await inflated(data.subarray(at, at + count));
      const bytes = code === 'floats' ? outOfFloatPlanes(sorted)
        : code === 'planes' ? outOfPlanes(sorted, bytesOfType[dtype]) : sorted;
      return verify(bytes, expected, what);
    }

    /** Integers of 7 bits a byte from `at` on: next(). */
    function integers(bytes, at) {
      const reader = {at, next() {
        let number = 0;
        for (let unit = 1; ; unit *= 128) {
          const byte = bytes[reader.at++];
          number += (byte & 127) * unit;
          if (byte < 128) return number;
        }
      }};
      return reader;
    }

    const bitsOf = new Uint32Array(1), floatOf = new Float32Array(bitsOf.buffer);

    /** The float next to fround(x) on the other side of x. */
    function otherFloat(x) {
      floatOf[0] = x;
      const away = Math.abs(x) > Math.abs(floatOf[0]);
      bitsOf[0] += away ? 1 : -1;
      return floatOf[0];
    }

    /** Rounds what was computed in double to the writer's floats. */
    function roundedBy(numbers, data, [, at, count, expected], what) {
      const block = data.slice(at, at + count), view = new DataView(block.buffer);
      const zero = view.getFloat64(0, true), floats = new Float32Array(numbers);
      if (zero > 0)
        for (let i = 0; i < floats.length; ++i) if (numbers[i] <= zero && numbers[i] >= -zero) floats[i] = 0;
      for (let i = 0; i < floats.length; ++i) floats[i] += 0;  // no zero is negative
      const bits = new Uint32Array(floats.buffer), reader = integers(block, 8);
      for (let n = reader.next(), cell = 0; n > 0; --n) {
        const step = reader.next(), odd = step % 2;
        cell += (step - odd) / 2;
        if ((bits[cell] & 1) !== odd) floats[cell] = otherFloat(numbers[cell]);
      }
      const cells = new Array(reader.next());
      for (let n = 0, cell = 0; n < cells.length; ++n) cells[n] = cell += reader.next();
      cells.forEach((cell, n) => { floats[cell] = view.getFloat32(reader.at + 4 * n, true); });
      verify(new Uint8Array(floats.buffer), expected, what);
      return floats;
    }

    async function read(pass, i, block, gradient, data) {
      const {name, dtype} = pass.values[i], what = gradient ? `gradient of ${name}` : name;
      if (block[0] !== 'computed') return numbersOf(await storedBytes(data, block, dtype, what), dtype);
      const numbers = gradient ? tessera.predict.backward(pass, i) : tessera.predict.forward(pass, i);
      return roundedBy(numbers, data, block, what);
    }

    /**
     * Reads all numbers of a pass from the container's bytes, in an order in which each is there before it is
     * needed. `rows` are its values in the index; each is told as found(i, whether a gradient, numbers), whose
     * promise is awaited.
     */
    async function decode(pass, rows, data, found) {
      const values = [], gradients = [];
      const known = Object.assign({}, pass, {value: (i) => values[i], gradient: (i) => gradients[i]});
      for (let i = 0; i < rows.length; ++i)
        await found(i, false, values[i] = await read(known, i, rows[i].value, false, data));
      for (let i = rows.length - 1; i >= 0; --i) {
        if (rows[i].gradient === null) gradients[i] = null;
        else await found(i, true, gradients[i] = await read(known, i, rows[i].gradient, true, data));
      }
    }

    tessera.decode = {bytesOfText, storedBytes, decode};
  }

  decoder(tessera);
  (tessera.workerParts = tessera.workerParts || []).push(decoder);
})(globalThis.tessera = globalThis.tessera || {});
