// All twelve lessons: words, question, every number at once, every backward step with its sum.
export const title = '2: twelve lessons, each with all its numbers, its sums and a question folded away';

const lessons = [
  'chain-rule', 'linear', 'softmax-cross-entropy', 'layer-norm', 'attention', 'learned-scale',
  'masked-diagonal', 'prior', 'decay', 'shifted-patches', 'adamw', 'block'
];

async function check(stage, browser, lesson) {
  const {assert} = stage;
  const about = await browser.run(`const pass = tessera.page.passes[0];
    const of = (v) => v.shape.reduce((a, b) => a * b, 1) * (v.hasGradient ? 2 : 1);
    return {numbers: pass.values.reduce((sum, v) => sum + of(v), 0),
      steps: pass.steps.length, silent: tessera.flow.silent(pass), values: pass.values.length,
      none: pass.values.filter((v) => !v.hasGradient).length};`);
  const sentences = (await browser.text('.look-at')).split(/[.:;] /).length;
  assert.ok(sentences >= 2, `${lesson}: ${sentences} sentences`);
  assert.equal(await browser.run(`return document.querySelector('.question').open;`), false);
  let stepsBack = 0;
  for (let time = 1; await browser.run('return !document.querySelector("#now[data-way=done]");'); ++time) {
    assert.ok(time <= 2 * about.steps, `${lesson}: the stepper comes to an end`);
    const way = await browser.run('return document.querySelector("#now").dataset.way;');
    const lines = await browser.texts('.running .sum-lines li');
    assert.ok(lines.length > 0, `${lesson}: ${await browser.text('#now')} has no sum`);
    for (const line of lines.filter((text) => !/more: click/.test(text)))
      assert.match(line, / = .*\d|∞/, `${lesson}: the numbers are put in`);
    if (way === 'backward') ++stepsBack;
    await browser.press('ArrowRight');
  }
  assert.equal(
      stepsBack, about.steps - about.silent, `${lesson}: each step that a gradient reaches was shown`);
  assert.equal(await browser.count('.card'), about.values);
  assert.equal(await browser.count('.card .number'), about.numbers, `${lesson}: every number is on the page`);
  assert.equal(await browser.count('.numbers-missing[data-state="not yet"]'), 0);
  assert.equal(await browser.count('.numbers-missing[data-state="none"]'), about.none);
}

// An edge that ran behind a card would seem to begin or end there.
async function edges(stage, browser, lesson) {
  for (const width of [400, 1920, 1280]) {
    await browser.resize(width, 900);
    await browser.run('return new Promise((r) => requestAnimationFrame(() => setTimeout(r, 60)));');
    const hidden = await browser.run(`const box = document.querySelector('.graph').getBoundingClientRect();
      const cards = [...document.querySelectorAll('.card')].map((e) => [e.dataset.value, e.getBoundingClientRect()]);
      const points = (path) => Array.from({length: 400}, (_, k) =>
        path.getPointAtLength(k / 399 * path.getTotalLength()));
      const behind = (path) => points(path)
        .flatMap(({x, y}) => cards.filter(([, r]) => x + box.left > r.left + 1 && x + box.left < r.right - 1 &&
          y + box.top > r.top + 1 && y + box.top < r.bottom - 1).map(([name]) => name));
      return [...document.querySelectorAll('.graph .wire')].flatMap(behind);`);
    stage.assert.deepEqual([...new Set(hidden)], [], `${lesson}, ${width} pixels: edges run behind these cards`);
  }
}

// No number that is written on a cell reaches into the next one, and none is left out.
async function fits(stage) {
  const browser = await stage.browse(stage.page('--lesson', 'attention'));
  const written = await browser.run(`const found = [], own = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      found.push({text, wide: this.measureText(text).width, cell: this.canvas.width / 3});
      own.call(this, text, x, y);
    };
    const pass = tessera.page.passes[0], value = pass.index('scores');
    tessera.frame.go({zoom: 'op', step: pass.values[value].step, value, time: 2 * pass.steps.length});
    CanvasRenderingContext2D.prototype.fillText = own;
    return found;`);
  stage.assert.equal(written.length, 4 * 9, 'four matrices of 3 x 3');
  for (const {text, wide, cell} of written) stage.assert.ok(wide < cell && text, `${text}: ${wide} in ${cell}`);
  await stage.end();
}

// A narrow page is one column as long as what it holds, and opens with the words of the lesson.
async function narrow(stage, width) {
  for (const lesson of ['chain-rule', 'attention']) {
    const browser = await stage.browse(stage.page('--lesson', lesson), {width, height: 800});
    const seen = await browser.run(`const view = document.getElementById('view');
      const words = document.querySelector('.look-at').getBoundingClientRect();
      return {cut: view.scrollHeight - view.clientHeight, scrolled: view.scrollTop + scrollY,
        read: words.top >= 0 && words.bottom <= innerHeight};`);
    stage.assert.deepEqual(seen, {cut: 0, scrolled: 0, read: true}, `${lesson} at ${width} pixels`);
    await stage.end();
  }
}

export async function run(stage) {
  for (const lesson of lessons) {
    const browser = await stage.browse(stage.page('--lesson', lesson));
    await check(stage, browser, lesson);
    await edges(stage, browser, lesson);
    await stage.shoot(browser, `scene-02-${lesson}`);
    await stage.end();
  }
  await fits(stage);
  for (const width of [1100, 400]) await narrow(stage, width);
}
