// Numbers as text: the shortest that reads back, all digits, and whole tensors as other programs read them.
(function(tessera) {
'use strict';

/**
 * The shortest ASCII text that reads back as the same number of its type; nan, inf and -inf as C++ writes
 * them.
 */
function plain(x, dtype) {
  if (Number.isNaN(x)) return 'nan';
  if (!Number.isFinite(x)) return x > 0 ? 'inf' : '-inf';
  return tessera.draw.exact(x, dtype).replace(/\u2212/g, '-');
}

// A finite number as a whole number and a power of two.
function parts(x) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, Math.abs(x));
  const bits = view.getBigUint64(0), power = Number(bits >> BigInt(52)),
        low = bits & ((BigInt(1) << BigInt(52)) - BigInt(1));
  return power === 0 ? [low, -1074] : [low | BigInt(1) << BigInt(52), power - 1075];
}

/** Every decimal digit of a number: a binary fraction has finitely many. */
function full(x) {
  if (!Number.isFinite(x) || Number.isInteger(x)) return plain(x, 'f64');
  let [whole, power] = parts(x);
  while (power < 0 && whole % BigInt(2) === BigInt(0)) {
    whole /= BigInt(2);
    ++power;
  }
  const digits = (whole * BigInt(5) ** BigInt(-power)).toString(), sign = x < 0 ? '-' : '';
  const exponent = digits.length - 1 + power;  // of the first digit
  if (exponent < -7) return `${sign}${digits[0]}.${digits.slice(1) || '0'}e${exponent}`;
  const padded = digits.padStart(1 - power, '0'), point = padded.length + power;
  return `${sign}${padded.slice(0, point)}.${padded.slice(point)}`;
}

/** A tensor as CSV, as `tessera inspect --tensor NAME --csv` prints it: a line a row, its indices first. */
function csv(numbers, shape, dtype) {
  const width = shape.length ? shape[shape.length - 1] : 1, lead = shape.slice(0, -1);
  const head = [...lead.map((_, i) => `i${i}`), ...Array.from({length: width}, (_, j) => j)];
  const lines = [head.join(',')], rows = width ? numbers.length / width : 0;
  for (let row = 0; row < rows; ++row) {
    const line = tessera.place.indicesOf(row, lead);
    for (let j = 0; j < width; ++j) line.push(plain(numbers[row * width + j], dtype));
    lines.push(line.join(','));
  }
  return `${lines.join('\n')}\n`;
}

const writers = {
  f32: [4, 'F32', (view, at, x) => view.setFloat32(at, x, true)],
  f64: [8, 'F64', (view, at, x) => view.setFloat64(at, x, true)],
  i64: [8, 'I64', (view, at, x) => view.setBigInt64(at, BigInt(x), true)],
  u8: [1, 'U8', (view, at, x) => view.setUint8(at, x)],
  bf16: [
    2, 'BF16',
    (view, at, x) => {  // its numbers are f32 whose lower half is 0
      const wide = new DataView(new ArrayBuffer(4));
      wide.setFloat32(0, x);
      view.setUint16(at, wide.getUint16(0), true);
    }
  ],
};

/** The bytes of a safetensors file of one tensor. */
function safetensors(name, numbers, shape, dtype) {
  const [width, kind, write] = writers[dtype];
  const entry = {dtype: kind, shape, data_offsets: [0, numbers.length * width]};
  let head = JSON.stringify({[name]: entry});
  const encoder = new TextEncoder(), length = encoder.encode(head).length;
  head += ' '.repeat((8 - length % 8) % 8);
  const headBytes = encoder.encode(head),
        bytes = new Uint8Array(8 + headBytes.length + numbers.length * width);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(headBytes.length), true);
  bytes.set(headBytes, 8);
  for (let i = 0; i < numbers.length; ++i) write(view, 8 + headBytes.length + i * width, numbers[i]);
  return bytes;
}

// Nested lists of numbers, a line a row.
function nested(numbers, shape, text, depth = 0, from = 0) {
  if (!shape.length) return text(numbers[from]);
  const [count, ...rest] = shape, step = rest.reduce((a, b) => a * b, 1);
  const items =
      Array.from({length: count}, (_, i) => nested(numbers, rest, text, depth + 1, from + i * step));
  return rest.length ? `[${items.join(`,\n${' '.repeat(depth + 1)}`)}]` : `[${items.join(', ')}]`;
}

const types = {
  f32: 'float32',
  f64: 'float64',
  i64: 'int64',
  u8: 'uint8',
  bf16: 'float32'
};

/** Text that NumPy ('np') or PyTorch ('torch') reads as the same numbers. */
function python(library, numbers, shape, dtype) {
  const word = (x) => Number.isFinite(x) ? plain(x, dtype) :
      Number.isNaN(x)                    ? `float('nan')` :
                                           `float('${x < 0 ? '-' : ''                   }inf')`;
  const made = library === 'np' ? 'np.array' : 'torch.tensor';
  return `${made}(${nested(numbers, shape, word)}, dtype=${library}.${types[dtype]})`;
}

tessera.texts = {
  plain,
  full,
  csv,
  safetensors,
  python
};
})(globalThis.tessera = globalThis.tessera || {});
