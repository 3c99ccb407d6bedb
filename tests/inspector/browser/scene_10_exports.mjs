// "I want to check it by hand": the page's files hold what the program prints, and the engine's own bytes.
import {spawnSync} from 'node:child_process';
import {existsSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

export const title = '10: any tensor and gradient leaves the page as CSV and as safetensors, exactly';

async function saved(folder, name) {
  const path = join(folder, name);
  for (let tries = 0; tries < 100 && !existsSync(path); ++tries)
    await new Promise((resolve) => setTimeout(resolve, 50));
  return readFileSync(path);
}

/** The tensor of a safetensors file as {shape, numbers}. */
function tensorOf(bytes, name) {
  const size = Number(bytes.readBigUInt64LE(0)), header = JSON.parse(bytes.subarray(8, 8 + size));
  const {dtype, shape, data_offsets: [from, to]} = header[name];
  const data = bytes.subarray(8 + size + from, 8 + size + to);
  return {dtype, shape, numbers: new Float32Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.length))};
}

function program(stage, ...words) {
  const run = spawnSync(stage.tessera, ['inspect', 'sl-vit', ...words], {encoding: 'utf8', maxBuffer: 1 << 26});
  stage.assert.equal(run.status, 0, run.stderr);
  return run.stdout;
}

async function press(browser, name) {
  await browser.run(`document.querySelector('details.export').open = true;`);
  await browser.click(`details.export [data-export="${name}"]`);
}

async function checkFiles(stage, downloads) {
  const {assert} = stage, name = 'blocks.5.attn.scores';
  const browser = await stage.browse(stage.page('sl-vit'), {downloads});
  await browser.run(`const pass = tessera.frame.pass();
    tessera.frame.go({value: pass.index(arguments[0]), gradient: true, cell: 3});`, name);
  await press(browser, 'gradient-safetensors');
  const tensor = tensorOf(await saved(downloads, `${name}.gradient.safetensors`), name);
  assert.deepEqual([tensor.dtype, tensor.shape], ['F32', [1, 12, 65, 65]]);
  const printed = JSON.parse(program(stage, '--tensor', name, '--grad', '--json'));
  assert.deepEqual(printed.shape, tensor.shape);
  const numbers = printed.values.flat(Infinity);
  assert.equal(numbers.length, tensor.numbers.length);
  for (let i = 0; i < numbers.length; ++i) assert.ok(Math.fround(numbers[i]) === tensor.numbers[i], `number ${i}`);

  await press(browser, 'value-CSV');
  const lines = (await saved(downloads, `${name}.csv`)).toString().trim().split('\n');
  assert.ok(lines.length > 65, 'a row of the file for each row of the tensor');
  await browser.run(`document.querySelector('details.export').open = true;`);
  await stage.shoot(browser, 'scene-10-export');
}

export async function run(stage) {
  const downloads = mkdtempSync(join(tmpdir(), 'tessera-downloads-'));
  try {
    await checkFiles(stage, downloads);
  } finally {
    rmSync(downloads, {recursive: true});
  }
}
