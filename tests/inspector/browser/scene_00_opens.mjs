// The page opens from disk by itself: painted before its numbers are decoded, and no request leaves it.
import {spawnSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

// A PNG of 1 x 1 pixels.
const picture = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64');

export const title = 'the page opens from disk and asks for nothing; a name from a file is text and nothing else';

// A model whose class and file names are markup: they are shown as they are written.
async function hostileNames(stage) {
  const {assert} = stage, name = '<img src=x onerror="document.title=1">';
  const folder = mkdtempSync(join(tmpdir(), 'tessera-names-'));
  try {
    for (const each of [name, '&lt;b&gt;'])
      for (let i = 0; i < 4; ++i) {
        mkdirSync(join(folder, 'train', each), {recursive: true});
        writeFileSync(join(folder, 'train', each, `${i}.png`), picture);
      }
    const words = ['train', '--dataset', 'folder', '--data', folder, '--model', 'vit', '--image-size', '16', '--epochs',
      '1', '--batch', '4', '--set', 'model.dim=8', '--set', 'model.depth=1', '--out', join(folder, 'run')];
    const run = spawnSync(stage.tessera, words, {encoding: 'utf8'});
    assert.equal(run.status, 0, run.stderr);
    const path = stage.page(join(folder, 'run'), '--image', join(folder, 'train', name, '0.png'));
    const browser = await stage.browse(path);
    assert.equal(await browser.count('img, b'), 0, 'no element comes from a name');
    assert.match(await browser.text('header'), /onerror|&lt;b&gt;/);
    assert.notEqual(await browser.run('return document.title;'), '1');
  } finally {
    rmSync(folder, {recursive: true});
  }
}

// In the boxes of the model each name is whole, and each number stands above its bar.
async function boxes(stage, browser) {
  const [names, numbers] = await browser.run(`const all = (selector) => [...document.querySelectorAll(selector)];
    return [all('.box-name').filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent),
      all('.meter-bar').filter((bar) => bar.parentElement.querySelector('.meter-number').getBoundingClientRect().bottom
        > bar.getBoundingClientRect().top + 1).length];`);
  stage.assert.deepEqual([names, numbers], [[], 0]);
}

export async function run(stage) {
  const {assert} = stage;
  const browser = await stage.browse(stage.page('sl-vit'));
  const paint =
      await browser.run(`return performance.getEntriesByName('first-contentful-paint')[0].startTime;`);
  process.stdout.write(`      first paint after ${paint.toFixed(0)} ms\n`);  // a busy machine paints late
  assert.equal(await browser.run(`return performance.getEntriesByType('resource').length;`), 0);
  const [values, steps] =
      await browser.run('const p = tessera.page.passes[0]; return [p.values.length, p.steps.length];');
  assert.ok(values > 200 && steps > 100, `${values} values, ${steps} steps`);
  const place =
      await browser.run(`const {place, page} = tessera, v = page.passes[0].index('blocks.5.attn.scores');
    const there = place.checked({...place.start, zoom: 'op', step: 3, time: 7, value: v, gradient: true, head: 3,
      cell: 70}, page.passes);
    const text = place.fragmentOf(there, page.passes);
    return [text, JSON.stringify(place.placeOf(text, page.passes)) === JSON.stringify(there)];`);
  assert.match(place[0], /gradient=blocks\.5\.attn\.scores&head=3&cell=0%2C0%2C1%2C5/);
  assert.ok(place[1], 'a fragment gives its place back');
  for (const width of [1280, 1400]) {
    await browser.resize(width, 900);
    await boxes(stage, browser);
  }
  await hostileNames(stage);
}
