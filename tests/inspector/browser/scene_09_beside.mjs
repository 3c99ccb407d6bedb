// Two models side by side, and a model beside itself with a term switched off.
export const title = '9: two models on one picture, on one scale; a term switched off; a part of a model';

const number = (text) => Number(text.replace(/\u2212/g, '-'));

// The table's losses are the passes' own.
async function losses(stage, browser, panel, places) {
  const cells = await browser.run(`return [...document.querySelectorAll('${panel} .draw-table tr')]
    .map((row) => [...row.children].map((cell) => cell.textContent)).find(([name]) => name === 'loss');`);
  const own = await browser.run(`return [${places}].map((p) => tessera.page.passes[p].loss);`);
  own.forEach((loss, i) => stage.assert.ok(Math.abs(number(cells[i + 1]) / loss - 1) < 1e-5, cells.join(' ')));
}

async function beside(stage, browser) {
  await browser.click('#tab-compare');
  await browser.wait('return document.querySelector(".draw-compare .draw-table");', 'the comparison');
  await losses(stage, browser, '.draw-compare', [0, 1]);
  stage.assert.deepEqual((await browser.texts('.draw-compare .draw-tensor figcaption')).slice(0, 3),
    ['logits, sl-vit', 'logits, l-vit', 'difference (l-vit - sl-vit)']);
  await stage.shoot(browser, 'scene_09_beside');
}

async function toggled(stage, browser) {
  await browser.click('#tab-toggle');
  await browser.wait('return document.querySelector(".draw-switch");', 'the switches');
  stage.assert.deepEqual(await browser.run(
    'return [...document.querySelectorAll(".draw-switch")].map((e) => e.dataset.term);'), ['mask']);
  stage.assert.match(await browser.text('.draw-toggle .draw-note'), /--without temperature,shift/);
  await browser.click('[data-term="mask"]');
  await browser.wait('return document.querySelector(".draw-toggle .draw-table");', 'both passes');
  await losses(stage, browser, '.draw-toggle', [0, 2]);
  stage.assert.match(await browser.text('.draw-toggle .draw-sentence'), /^Without the diagonal mask \(LSA\) the loss/);
  await stage.shoot(browser, 'scene_09_toggled');
}

// A part says what it left out, explains no gradient as whole that is not, and proves none.
async function part(stage) {
  const browser = await stage.browse(stage.page('sl-vit', '--image-size', '16', '--only', 'blocks.4'));
  stage.assert.match(await browser.text('.left-out'), /patch_embed, .*blocks\.3, blocks\.5/);
  const told = await browser.run(`const pass = tessera.page.passes[0], out = pass.index('blocks.4.out');
    let refused = '';
    try { tessera.explain.proveOp(pass, out, 3); } catch (error) { refused = error.message; }
    return [tessera.explain.gradient(pass, out, 3).note, refused,
      tessera.explain.value(pass, pass.index('blocks.3.out'), 3).note, pass.gradient(out)[3]];`);
  stage.assert.match(told[0], /left out of this page, as asked/);
  stage.assert.match(told[1], /left out of this page/);
  stage.assert.match(told[2], /Made by a step that was left out/);
  stage.assert.ok(told[3] !== 0);
  const inside = await browser.run(`const pass = tessera.page.passes[0], i = pass.index('blocks.4.attn.scores');
    return [tessera.explain.proveOp(pass, i, 70)];`);
  stage.assert.ok(inside[0].ok, JSON.stringify(inside));
}

export async function run(stage) {
  const browser = await stage.browse(stage.page('sl-vit', '--image-size', '16', '--with', 'l-vit', '--without', 'mask'),
    {fragment: '#zoom=model'});
  await beside(stage, browser);
  await toggled(stage, browser);
  await part(stage);
}
