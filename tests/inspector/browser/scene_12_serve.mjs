// A lecturer on stage: the engine behind the page, on the loopback address.
import { spawn } from 'node:child_process';
import { deflateSync } from 'node:zlib';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const title = 'served: any cell proved, another picture, a step of the optimizer, and Ctrl-C';

/** Starts `tessera inspect ARGUMENTS --serve`; resolves with {url, end}. */
function serve(tessera, ...words) {
  const program = spawn(tessera, ['inspect', ...words, '--serve'], {stdio: ['ignore', 'pipe', 'inherit']});
  const ended = new Promise((resolve) => program.on('exit', (code) => resolve(code)));
  const end = () => {
    program.kill('SIGINT');
    return ended;
  };
  return new Promise((resolve, reject) => {
    let said = '';
    ended.then((code) => reject(new Error(`the program ended (${code})`)));
    program.stdout.on('data', (data) => {
      said += data;
      const found = /http:\/\/127\.0\.0\.1:\d+\//.exec(said);
      if (found) resolve({url: found[0], end});
    });
  });
}

const chunk = (name, data) => {
  const crc = (bytes) => {
    let sum = 0xffffffff;
    for (const byte of bytes) {
      sum ^= byte;
      for (let bit = 0; bit < 8; ++bit) sum = sum & 1 ? 0xedb88320 ^ (sum >>> 1) : sum >>> 1;
    }
    return ~sum >>> 0;
  };
  const body = Buffer.concat([Buffer.from(name), data]), head = Buffer.alloc(4), tail = Buffer.alloc(4);
  head.writeUInt32BE(data.length);
  tail.writeUInt32BE(crc(body));
  return Buffer.concat([head, body, tail]);
};

/** A PNG of side x side pixels, red to blue from left to right. */
function png(side) {
  const head = Buffer.alloc(13), rows = Buffer.alloc(side * (1 + 3 * side));
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  head.set([8, 2, 0, 0, 0], 8);
  for (let y = 0; y < side; ++y)
    for (let x = 0; x < side; ++x) {
      const at = y * (1 + 3 * side) + 1 + 3 * x;
      rows[at] = 255 - Math.floor(255 * x / side);
      rows[at + 2] = Math.floor(255 * x / side);
    }
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0))]);
}

const decoded = 'return tessera.page && tessera.frame.decoded;';
const idle = "return document.getElementById('serve-state').textContent === '';";

async function proves(browser, assert) {
  const [shown, stored] = await browser.run(`const pass = tessera.page.passes[0];
    const value = pass.index('blocks.5.attn.scores'), cell = 70;
    tessera.frame.go({value, gradient: true, cell});
    return [pass.gradient(value)[cell], (pass.proofs[value] || []).some((proof) => proof.cell === cell)];`);
  assert.ok(!stored, 'this cell has no stored proof');
  await browser.click('#prove-whole');
  await browser.wait("return document.querySelector('.proof[data-proof=whole] .verdict.right') !== null;",
    'the proof of the whole model', 60);
  const text = await browser.text('#proof-result');
  assert.match(text, /engine/);
  const proof = JSON.parse(await browser.run(
    'return tessera.serve.prove(tessera.frame.place).then((found) => JSON.stringify(found));'));
  assert.ok(proof.ok && Math.abs(proof.analytic - shown) <= 1e-3 * Math.abs(proof.analytic) + 1e-9, 'one gradient');
}

async function takesSteps(browser, assert) {
  const before = await browser.run('return tessera.page.passes[0].loss;');
  for (let i = 0; i < 2; ++i) {
    await browser.click('#serve-step');
    await browser.wait(`return tessera.serve.losses.length === ${i + 2};`, 'a step', 120);
    await browser.wait(idle, 'the step shown', 60);
  }
  const losses = await browser.run('return tessera.serve.losses;');
  assert.equal(losses[0], before);
  assert.ok(losses[1] < losses[0] && losses[2] < losses[1], `the loss falls: ${losses}`);
  assert.equal((await browser.texts('#serve-losses li')).length, 3);
  assert.ok((await browser.text('#loss')).includes(await browser.run(
    'return tessera.draw.short(tessera.page.passes[0].loss, 6);')), 'the head has the new loss');
}

async function takesPicture(stage, browser) {
  const {assert} = stage, path = join(stage.pages, 'other.png');
  writeFileSync(path, png(40));
  const sum = 'return tessera.page.passes[0].value(tessera.page.passes[0].index("input")).reduce((a, b) => a + b);';
  const before = await browser.run(sum);
  await browser.type('#serve-picture', path);
  await browser.wait(`return (() => { ${sum} })() !== ${before};`, 'the other picture', 120);
  await browser.wait(idle, 'the picture shown', 60);
  const red = await browser.run('const {rgba} = tessera.page.passes[0].picture; return [rgba[0], rgba[2]];');
  assert.ok(red[0] > 200 && red[1] < 50, `the picture's first pixel is red: ${red}`);
  const refused = await browser.run(`return tessera.serve.picture(new File(['GIF89a'], 'x.gif',
    {type: 'image/gif'})).then(() => 'taken', (error) => error.message);`);
  assert.match(refused, /PNG, JPEG or BMP/);
  const damaged = await browser.run(`return tessera.serve.picture(new File(['nothing'], 'x.png',
    {type: 'image/png'})).then(() => 'taken', (error) => error.message);`);
  assert.match(damaged, /picture/);
}

export async function run(stage) {
  const {assert} = stage;
  const server = await serve(stage.tessera, 'sl-vit', '--image-size', '16', '--classes', '3', '--seed', '5');
  try {
    const browser = await stage.visit(server.url, {plain: true});
    await browser.wait(decoded, 'the numbers', 60);
    await proves(browser, assert);
    await takesSteps(browser, assert);
    await takesPicture(stage, browser);
    await stage.shoot(browser, 'serve');
    await browser.complaints();  // the browser reports the refusal of the damaged picture, which was asked for
  } finally {
    assert.equal(await server.end(), 0, 'Ctrl-C ends it cleanly');
  }
}
