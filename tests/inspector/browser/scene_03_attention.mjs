// A teacher with a run: block 5, attention, head 3; scores, softmax and their gradients as maps over the patches of
// the picture, for the query patch under the mouse.
import { spawnSync } from 'node:child_process';

export const title = '3: attention of a block and head over the patches, for the query under the mouse';

const place = '#zoom=block&module=blocks.5.attn&value=logits&view=attention';
const grid = 8;

/** Moves the mouse to the middle of cell (row, col) of a drawing of rows by cols cells. */
async function hover(browser, selector, [row, col], [rows, cols]) {
  const box = await browser.run(`const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});
    const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height];`, selector);
  const x = Math.floor(box[0] + (col + 0.5) / cols * box[2]), y = Math.floor(box[1] + (row + 0.5) / rows * box[3]);
  await browser.pointer([{type: 'pointerMove', duration: 0, x: x - 1, y}, {type: 'pointerMove', duration: 0, x, y}]);
}

/** The number that the program prints for a cell of a head. */
function printed(stage, tensor, gradient, head, row, col) {
  const words = ['inspect', 'sl-vit', '--tensor', tensor, '--head', String(head), '--csv'];
  const run = spawnSync(stage.tessera, gradient ? [...words, '--grad'] : words, {encoding: 'utf8', maxBuffer: 1 << 24});
  stage.assert.equal(run.status, 0, run.stderr);
  const lines = run.stdout.trim().split('\n').slice(1).map((line) => line.split(','));
  return Math.fround(Number(lines[row].slice(-65)[col]));
}

const numberIn = (text) => Number(text.replace(/.* = /s, '').replace(/\u2212/g, '-'));

async function picture(stage, browser) {
  const {assert} = stage;
  assert.equal(await browser.count('.draw-head'), 12, 'a thumbnail for each head');
  await browser.click('.draw-head[data-head="3"]');
  assert.equal(await browser.run(`return document.querySelector('.draw-head[data-head="3"]')
    .getAttribute('aria-pressed');`), 'true');
  await hover(browser, '.draw-query-picture .draw-top', [2, 3], [grid, grid]);
  assert.match(await browser.text('.draw-sentence'), /^Head 3, query patch \(2, 3\): looks most at /);
}

// What the mouse reads on a map is the engine's number, to the last bit.
async function maps(stage, browser) {
  const query = 1 + 2 * grid + 3, key = 1 + 4 * grid + 6;
  const parts = [['scores', 'blocks.5.attn.scores', false], ['softmax', 'blocks.5.attn.probabilities', false],
    ['dsoftmax', 'blocks.5.attn.probabilities', true], ['dscores', 'blocks.5.attn.scores', true]];
  for (const [part, tensor, gradient] of parts) {
    await hover(browser, `[data-part="${part}"] .draw-map .draw-top`, [4, 6], [grid, grid]);
    const told = await browser.text(`[data-part="${part}"] .draw-readout`);
    stage.assert.match(told, /^key patch \(4, 6\): /, part);
    stage.assert.equal(Math.fround(numberIn(told)), printed(stage, tensor, gradient, 3, query, key), part);
  }
}

// The query itself is masked in this model: minus infinity is a word and a pattern of its own, not a colour of 0.
async function masked(stage, browser) {
  await hover(browser, '[data-part="scores"] .draw-map .draw-top', [2, 3], [grid, grid]);
  stage.assert.match(await browser.text('[data-part="scores"] .draw-readout'), /= \u2212\u221e$/);
  stage.assert.match(await browser.text('[data-part="scores"] .draw-special'), /^\u2212\u221e: 780$/);
  await hover(browser, '[data-part="dscores"] .draw-map .draw-top', [2, 3], [grid, grid]);
  stage.assert.ok(numberIn(await browser.text('[data-part="dscores"] .draw-readout')) === 0, 'no gradient passes it');
}

async function cellOpens(stage, browser) {
  const query = 1 + 2 * grid + 3, key = 1 + 4 * grid + 6;
  await hover(browser, '[data-part="dscores"] .draw-map .draw-top', [4, 6], [grid, grid]);
  await browser.clickAt('[data-part="dscores"] .draw-map .draw-top', 6.5 / grid, 4.5 / grid);
  const url = decodeURIComponent(await browser.url());
  stage.assert.match(url, /gradient=blocks\.5\.attn\.scores/);
  stage.assert.match(url, new RegExp(`cell=0,3,${query},${key}`));
}

/** What the page's thread has done so far: `TaskDuration` in s of its own, `LayoutCount`, `RecalcStyleCount`, ... */
async function work(browser) {
  const {metrics} = await browser.devtools('Performance.getMetrics', {});
  return Object.fromEntries(metrics.map(({name, value}) => [name, value]));
}

// A click on a cell does a bounded amount of work: one that measured the page cell by cell would
// lay it out hundreds of times. Its time is printed only, since a busy machine is slow.
async function clicks(stage, browser) {
  await browser.devtools('Performance.enable', {timeDomain: 'threadTicks'});
  const times = [];
  for (let i = 0; i < 4; ++i) {
    const before = await work(browser);
    await browser.clickAt('[data-part="dscores"] .draw-map .draw-top', (i + 0.5) / grid, 5.5 / grid);
    await browser.run('return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));');
    const after = await work(browser), done = (name) => after[name] - before[name];
    times.push(1000 * done('TaskDuration'));
    const counts = [done('LayoutCount'), done('RecalcStyleCount')];
    stage.assert.ok(
        counts.every((count) => count >= 1 && count <= 12), `layouts and styles of a click: ${counts.join(', ')}`);
  }
  process.stdout.write(`      clicks take ${times.map((ms) => ms.toFixed(0)).join(', ')} ms\n`);
}

// The keyboard reads the matrix and opens a cell.
async function keyboard(stage, browser) {
  await browser.run(`document.querySelector('[data-part="softmax"] .draw-scroll .draw-top').focus();`);
  await browser.press('Home', 'ArrowRight', 'ArrowDown');
  stage.assert.match(await browser.text('[data-part="softmax"] .draw-readout'),
    /^query patch \(0, 0\) \u00b7 key patch \(0, 0\): softmax = 0$/);
  await browser.press('Enter');
  stage.assert.match(decodeURIComponent(await browser.url()), /value=blocks\.5\.attn\.probabilities&.*cell=0,3,1,1/);
}

async function legends(stage, browser) {
  const limit = await browser.run(`const {page} = tessera, pass = page.passes[0];
    const g = pass.gradient(pass.index('blocks.5.attn.scores'));
    return tessera.draw.short(g.reduce((most, x) => Math.max(most, Math.abs(x)), 0));`);
  const ticks = await browser.texts('[data-part="dscores"] .draw-tick');
  stage.assert.equal(ticks[ticks.length - 1], limit, 'the legend ends at the largest gradient of all heads');
  stage.assert.equal(ticks[0], `\u2212${limit}`, 'and is symmetric about 0');
  stage.assert.ok(ticks.includes('0'));
  // The logits, a single row of numbers below, take no more of the page than they need.
  const hidden = await browser.run(`document.getElementById('view').scrollTop = 0;
    const bottom = document.getElementById('view').getBoundingClientRect().bottom;
    return [...document.querySelectorAll('.draw-legend')]
      .filter((e) => e.getBoundingClientRect().bottom > bottom).length;`);
  stage.assert.equal(hidden, 0, 'each legend is in sight before anything is scrolled');
}

export async function run(stage) {
  const browser = await stage.browse(stage.page('sl-vit'), {fragment: place, width: 1280, height: 900});
  await browser.wait('return document.querySelector(".draw-attention");', 'the attention');
  await picture(stage, browser);
  await maps(stage, browser);
  await masked(stage, browser);
  await legends(stage, browser);
  await stage.shoot(browser, 'scene_03');
  await cellOpens(stage, browser);
  await clicks(stage, browser);
  await keyboard(stage, browser);
}
