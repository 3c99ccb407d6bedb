// Is layer 7 learning? The ladder of all layers, with verdicts in words.
export const title = '7: the ladder names the layer whose update is smaller than its neighbours\'';

const rows = ['patch_embed', ...Array.from({length: 9}, (_, i) => `blocks.${i}`), 'norm', 'head', 'cls_token',
  'pos_embed'];

// RMS by its definition, from the page's numbers.
const rms = `const rms = (x) => Math.sqrt(x.reduce((sum, v) => sum + v * v, 0) / x.length);
  const pass = tessera.page.passes[0], at = (name) => pass.index(name);`;

async function ladder(stage, browser) {
  await browser.click('#tab-ladder');
  await browser.wait('return document.querySelector(".draw-ladder");', 'the ladder');
  const names = await browser.run('return [...document.querySelectorAll(".draw-row-name")].map((e) => e.textContent);');
  stage.assert.deepEqual([...names].sort(), [...rows].sort());
  const [activation, gradient, told] = await browser.run(`${rms}
    const titles = [...document.querySelectorAll('.draw-dot title')].map((e) => e.textContent);
    const out = at('blocks.4.out');
    return [rms(pass.value(out)), rms(pass.gradient(out)), titles.filter((text) => text.startsWith('blocks.4: '))];`);
  const number = (word) => Number(told.find((text) => text.includes(word)).replace(/.* /, '').replace(/\u2212/g, '-'));
  stage.assert.ok(Math.abs(number(': activation') / activation - 1) < 1e-12, 'the RMS of what block 4 gives');
  stage.assert.ok(Math.abs(number(': gradient') / gradient - 1) < 1e-12, 'the RMS of its gradient');
}

// Every parameter's update is a thousandth of its weight, block 7's a fortieth of that.
async function verdict(stage, browser) {
  await browser.run(`${rms}
    pass.updates = Object.fromEntries(pass.values.filter((value) => value.parameter).map((value) => {
      const weight = rms(pass.value(value.index)) || 1, slow = value.name.startsWith('blocks.7.') ? 40 : 1;
      return [value.name, {weight_rms: weight, update_rms: weight * 1e-3 / slow}];
    }));`);
  await browser.click('#tab-own');
  await browser.click('#tab-ladder');
  await browser.wait('return document.querySelector(".draw-verdicts");', 'the verdict');
  const said = await browser.texts('.draw-verdicts li');
  stage.assert.ok(said.includes('Block 7\'s update is 40 times smaller than its neighbours\'.'), said.join(' | '));
  stage.assert.deepEqual(await browser.run(
    'return [...document.querySelectorAll(".draw-flagged")].map((e) => e.textContent);'), ['blocks.7']);
  stage.assert.match(await browser.text('.draw-ladder .draw-note'), /10 times smaller or larger .* below 1e\u22125/);
  stage.assert.ok(await browser.run(`const chart = document.querySelector('.draw-ladder svg');
    const {left} = chart.getBoundingClientRect();
    return [...document.querySelectorAll('.draw-row-name')].every((e) => e.getBoundingClientRect().left >= left);`),
    'no name of a layer is cut');
}

// The last step of a schedule moves every layer a little: that is no fault of a layer, but a stopped one still is.
async function endOfSchedule(stage, browser) {
  const said = await browser.run(`${rms}
    const told = (small, rate) => {
      const updates = Object.fromEntries(pass.values.filter((value) => value.parameter).map((value) => {
        const weight = rms(pass.value(value.index)) || 1, times = value.name.startsWith('blocks.7.') ? small : 1;
        return [value.name, {weight_rms: weight, update_rms: weight * 2e-6 * times}];
      }));
      const other = Object.assign({}, pass, {updates, learning_rate: rate});
      const texts = tessera.draw.ladderVerdicts(tessera.draw.ladder(other), other).map((verdict) => verdict.text);
      return {texts, note: tessera.draw.ladderPanel(other).querySelector('.draw-note:last-child').textContent};
    };
    const end = {now: 1e-6, highest: 3e-3};
    return [told(1, end), told(1e-3, end), told(1, {now: 3e-3, highest: 3e-3}), told(0, {now: 0, highest: 3e-3})];`);
  const [healthy, stopped, dead, still] = said, about = (one) => one.texts.filter((text) => /update/.test(text));
  stage.assert.deepEqual(about(healthy), []);
  stage.assert.match(healthy.note, /1e\u22126, is 3000 times smaller than the run's highest, 0\.003, and so are/);
  stage.assert.deepEqual(about(stopped).filter((text) => /stands still/.test(text)), ['block 7\'s update : weight is ' +
    '2e\u22129, 6e\u22126 at the run\'s highest learning rate, so small that it all but stands still']);
  stage.assert.equal(about(dead).filter((text) => /stands still/.test(text)).length, rows.length);
  stage.assert.deepEqual(about(still).filter((text) => /does not move/.test(text)), []);
  stage.assert.match(still.note, /The learning rate of this step is 0: nothing moves/);
}

export async function run(stage) {
  const browser = await stage.browse(stage.page('sl-vit'), {fragment: '#zoom=model'});
  await ladder(stage, browser);
  await verdict(stage, browser);
  await endOfSchedule(stage, browser);
  await stage.shoot(browser, 'scene_07');
  await browser.run(`document.querySelectorAll('.draw-ladder .draw-row-name')[4]
    .dispatchEvent(new MouseEvent('click'));`);
  stage.assert.match(await browser.url(), /value=blocks\.3\.out/, 'a layer leads to its output');
}
