// The other page of the program: a run's report, its charts read with the pointer and with the arrow keys.
import {spawnSync} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

export const title = 'a report: its charts tell their numbers to the pointer and to the arrow keys';

const tiny = '--dataset shapes --image-size 16 --model vit --epochs 3 --batch 16 --set data.train_images=48 ' +
  '--set data.validation_images=20 --set model.dim=16 --set model.depth=1 --set schedule.warmup_epochs=0';

const tip = `const tip = document.getElementById('tip');
  return tip.style.visibility === 'visible' ? tip.innerText : '';`;

async function read(browser, assert) {
  const shown = () => browser.run(tip);
  const points = await browser.run(`const svg = document.querySelector('svg.chart');
    svg.focus();
    const all = JSON.parse(svg.dataset.points).flatMap((series) => series.points);
    return all.sort((a, b) => a[0] - b[0]).map((point) => [point[2], point[3]]);`);
  assert.ok(points.length > 9, 'each step and each epoch has a point');
  const holds = async (point) => {
    const text = await shown();
    assert.ok(text.includes(point[0]) && text.includes(point[1]), `'${text}' holds '${point}'`);
  };
  await browser.press('Home');
  await holds(points[0]);
  const first = await shown();
  await browser.press('ArrowRight');
  assert.notEqual(await shown(), first);
  await browser.press('ArrowLeft');
  assert.equal(await shown(), first);
  await browser.press('End');
  await holds(points.at(-1));
  await browser.press('Escape');
  assert.equal(await shown(), '');
  await browser.clickAt('svg.chart', 0.5, 0.5);
  assert.notEqual(await shown(), '');
}

export async function run(stage) {
  const folder = mkdtempSync(join(tmpdir(), 'tessera-report-'));
  try {
    const out = join(folder, 'run');
    const trained = spawnSync(stage.tessera, ['train', '--out', out, ...tiny.split(' ')], {encoding: 'utf8'});
    stage.assert.equal(trained.status, 0, trained.stderr);
    const browser = await stage.browse(join(out, 'report.html'), {plain: true});
    await stage.shoot(browser, 'report');
    await read(browser, stage.assert);
  } finally {
    rmSync(folder, {recursive: true, force: true});
  }
}
