// "Where does this number come from?": a cell of a gradient, its terms, and a walk from term to term.
export const title =
    '4: a number shows the sum that made it, largest terms first, each a click to its own cell';

const shown = (browser) => browser.text('#cell-name');
const number = (text) => Number(text.replace(/\u2212/g, '-'));

async function terms(browser) { return (await browser.texts('#cell .terms .term-value')).map(number); }

async function walk(stage, browser) {
  const {assert} = stage, start = await shown(browser);
  await browser.click('#cell .terms li:first-child button.factor.gradient');
  const second = await shown(browser);
  assert.notEqual(second, start);
  assert.match(second, /^dL\/d\(blocks\.5\.attn/);
  await browser.click('#cell .terms li:first-child button.factor');
  const third = await shown(browser);
  assert.notEqual(third, second);
  await browser.press(',');
  assert.equal(await shown(browser), second, 'back along the numbers looked at');
  await browser.press(',');
  assert.equal(await shown(browser), start);
  await browser.press('.');
  assert.equal(await shown(browser), second);
  await browser.back();
  await browser.wait(
      `return document.getElementById('cell-name').innerText === ${JSON.stringify(start)};`,
      'the browser\'s own way back');
}

async function link(stage, browser, page) {
  const {assert} = stage, url = await browser.url(), name = await shown(browser);
  const other = await stage.browse(page, {fragment: url.slice(url.indexOf('#'))});
  assert.equal(await shown(other), name, 'a link to a cell shows that cell');
  await other.run(`location.hash = location.hash.replace(/cell=[^&]*/, 'cell=0,3,7,2');`);
  await other.wait(
      `return /\\[0, 3, 7, 2\\]/.test(document.getElementById('cell-name').innerText);`, 'hashchange');
}

// A link to a cell of a head, without a word of the head: what the op reads and makes is drawn of that head.
async function sameHead(stage, page) {
  const at = 'blocks.5.attn.scores';
  const browser = await stage.browse(page, {fragment: `#zoom=op&op=${at}&gradient=${at}&cell=0,2,3,5`});
  const captions = (await browser.texts('.matrix figcaption')).filter((text) => /\[1, 12, /.test(text));
  stage.assert.ok(captions.length >= 4, captions.join(' | '));
  for (const text of captions) stage.assert.match(text, / at \[0, 2, :, :\]/);
}

export async function run(stage) {
  const {assert} = stage, page = stage.page('sl-vit');
  const browser = await stage.browse(page);
  await browser.press('/');
  await browser.type('#search', 'blocks.5.attn.scores');
  await browser.press('Enter');
  await browser.press('g', 'n');
  assert.equal(await browser.text('.pane.chosen h3'), 'dL/d(blocks.5.attn.scores)');
  await browser.run(`tessera.frame.go({head: 3});`);
  await browser.click('.pane.gradient .grid-cell[data-row="5"][data-col="2"]');
  assert.equal(await shown(browser), 'dL/d(blocks.5.attn.scores)[0, 3, 5, 2]');
  assert.match(await browser.text('#cell .sum-formula'), /dx = y \(dy - sum_k dy_k y_k\)/);
  assert.match(await browser.text('#cell .sum-numbers'), /\d.*[=≈] /);
  assert.match(await browser.text('#cell .term-count'), /largest 20 of \d+ terms/);
  const listed = await terms(browser);
  assert.equal(listed.length, 20);
  for (let i = 1; i < 20; ++i)
    assert.ok(Math.abs(listed[i]) <= Math.abs(listed[i - 1]) * (1 + 1e-5), 'largest first');
  const rest = number(/add up to (\S+)\. /.exec(await browser.text('#cell .rest'))[1]);
  const exact = await browser.run(
      `const {place} = tessera.frame; return tessera.frame.pass().gradient(place.value)[place.cell];`);
  const total = listed.reduce((sum, x) => sum + x, rest);
  assert.ok(
      Math.abs(total - exact) <= 1e-4 * Math.abs(listed[0]),
      `${total} is the sum of the terms, ${exact} the gradient`);
  await stage.shoot(browser, 'scene-04-sum');
  await walk(stage, browser);
  await link(stage, browser, page);
  await sameHead(stage, page);
  const slowest = await browser.run(`const times = [], pass = tessera.frame.pass();
    for (const name of ['blocks.5.attn.scores', 'blocks.5.mlp.fc1.out', 'blocks.0.out', 'patch_embed.proj.weight',
      'blocks.3.attn.qkv.weight', 'head.weight', 'pos_embed']) {
      const value = pass.index(name);
      for (const change of [{zoom: 'op', value, gradient: true}, {cell: 17}, {zoom: 'block'}, {zoom: 'model'}]) {
        const start = performance.now();
        tessera.frame.go(change);
        document.body.getBoundingClientRect();
        times.push([performance.now() - start, name, JSON.stringify(change)]);
      }
    }
    return times.sort((a, b) => b[0] - a[0])[0];`);
  process.stdout.write(
      `      slowest of 28 clicks: ${slowest[0].toFixed(0)} ms (${slowest[1]}, ${slowest[2]})\n`);
}
