// What do LSA, the prior, the decay and SPT do here? Each term as a drawing, with its gradient.
import { fileURLToPath } from 'node:url';

export const title = '8: temperature by depth and head, the prior, gates and decay, the five shifted pictures';

const fixture = (name) => fileURLToPath(new URL(`../../fixtures/${name}.safetensors`, import.meta.url));
const number = (text) => Number(text.replace(/\u2212/g, '-'));

async function openTerms(stage, model) {
  const browser = await stage.browse(stage.page(model), {fragment: '#zoom=model'});
  await browser.click('#tab-terms');
  await browser.wait('return document.querySelector(".draw-term");', 'the terms');
  return browser;
}

const titlesOf = (browser, term) => browser.run(
  `return [...document.querySelectorAll('[data-term="${term}"] .draw-dot title')].map((e) => e.textContent);`);

// A dot for each of the 9 layers' 12 heads, at 1 / scale; sqrt(16) = 4 is a line.
async function temperature(stage, browser) {
  const dots = await titlesOf(browser, 'temperature');
  stage.assert.equal(dots.length, 9 * 12);
  const scale = await browser.run(`const pass = tessera.page.passes[0];
    return pass.value(pass.index('blocks.3.attn.scale'))[5];`);
  const told = dots.find((text) => text.startsWith('blocks.3.attn, head 5: '));
  stage.assert.ok(Math.abs(number(/temperature (\S+),/.exec(told)[1]) * scale - 1) < 1e-3, told);
  stage.assert.match(told, /sqrt\(d\) = 4,/);
  stage.assert.equal(await browser.run('return document.querySelector(".draw-reference") !== null;'), true);
}

// SPT: the picture and four copies, moved by half a patch of 4: each pixel's colour is the picture's, two pixels away.
async function shifted(stage, browser) {
  stage.assert.deepEqual(await browser.texts('[data-term="shifted"] figcaption'),
    ['as it is', 'looks up and left', 'looks up and right', 'looks down and left', 'looks down and right']);
  const wrong = await browser.run(`const pass = tessera.page.passes[0], {picture} = pass;
    const steps = [[0, 0], [-2, -2], [-2, 2], [2, -2], [2, 2]];
    const canvases = [...document.querySelectorAll('[data-term="shifted"] .draw-picture')];
    let wrong = 0;
    canvases.forEach((canvas, copy) => {
      const pen = canvas.getContext('2d'), cell = canvas.width / 32;
      for (let r = 2; r < 30; ++r)
        for (let c = 2; c < 30; ++c) {
          const [dy, dx] = steps[copy], shown = pen.getImageData((c + 0.5) * cell, (r + 0.5) * cell, 1, 1).data;
          const is = picture.rgba.subarray(4 * ((r + dy) * 32 + c + dx), 4 * ((r + dy) * 32 + c + dx) + 3);
          for (let k = 0; k < 3; ++k) if (Math.abs(shown[k] - is[k]) > 2) ++wrong;
        }
    });
    return wrong;`);
  stage.assert.equal(wrong, 0, 'colour values of the copies that are not those of the picture');
}

async function hoverMiddle(browser, selector) {
  const [x, y] = await browser.run(`const e = document.querySelector(arguments[0]);
    e.scrollIntoView({block: 'center'});
    const r = e.getBoundingClientRect();
    return [r.left + r.width / 2, r.top + r.height / 2].map(Math.floor);`, selector);
  await browser.pointer([{type: 'pointerMove', duration: 0, x: x - 1, y}, {type: 'pointerMove', duration: 0, x, y}]);
}

// The middle of the prior's picture is the offset (0, 0), row 24 of its table of 7 by 7.
async function prior(stage, fixture) {
  const browser = await openTerms(stage, fixture);
  await hoverMiddle(browser, '[data-term="prior"] figure .draw-top');
  const told = await browser.text('[data-term="prior"] figure .draw-readout');
  const omega = await browser.run(`const pass = tessera.page.passes[0], [table] = tessera.draw.offsetTables(pass);
    return pass.value(table.value)[24 * table.heads];`);
  stage.assert.match(told, /^key 0 to the right, 0 down: Omega = /);
  stage.assert.equal(Math.fround(number(told.replace(/.* = /, ''))), Math.fround(omega));
  stage.assert.equal(await browser.count('[data-term="prior"] figure'), 2, 'the prior and its gradient');
}

// Gates and the decay M = -|(G_i + G_j) / 2 * distance * alpha| that they make, by the numbers on the page.
async function decay(stage, fixture) {
  const browser = await openTerms(stage, fixture);
  stage.assert.deepEqual(await browser.texts('[data-term="decay"] figcaption'),
    ['gate G = log sigmoid', 'dL/dgate', 'decay M, added to the scores', 'dL/dM']);
  const worst = await browser.run(`const pass = tessera.page.passes[0], {alpha} = pass.config.attention.decay;
    const step = pass.steps.find((each) => each.op === 'content_decay'), [gates, tokens, heads] = step.shapes[0];
    const g = pass.value(step.inputs[0]), m = pass.value(step.output), side = Math.sqrt(tokens - 1);
    let worst = 0;
    for (let i = 1; i < tokens; ++i)
      for (let j = 1; j < tokens; ++j) {
        const [y, x] = [Math.floor((i - 1) / side) - Math.floor((j - 1) / side), (i - 1) % side - (j - 1) % side];
        const is = -Math.abs((g[i * heads] + g[j * heads]) / 2 * (Math.abs(x) + Math.abs(y)) * alpha);
        worst = Math.max(worst, Math.abs(is - m[i * tokens + j]));
      }
    return gates > 0 ? worst : Infinity;`);
  stage.assert.ok(worst < 1e-5, `M is off by ${worst}`);
}

export async function run(stage) {
  const browser = await openTerms(stage, 'sl-vit');
  await temperature(stage, browser);
  await shifted(stage, browser);
  await stage.shoot(browser, 'scene_08');
  await prior(stage, fixture('sp-vit'));
  await decay(stage, fixture('vit-cag'));
}
