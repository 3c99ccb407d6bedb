// "Why is this gradient zero?": each kind of zero says its reason at the number.
export const title = '6: a gradient that is 0, or never came, says why';

/** The words at a cell of a gradient. */
async function reason(browser, name, cell) {
  await browser.run(
      `const pass = tessera.frame.pass(), value = pass.index(arguments[0]);
      tessera.frame.go({value, gradient: true, cell: arguments[1], time: 2 * pass.steps.length});`,
      name, cell);
  await browser.wait(`return document.querySelector('#cell [role=note]') !== null;`, `a reason at ${name}`);
  return browser.text('#cell [role=note]');
}

/** The first cell of a gradient that is 0 where `also`, a JavaScript condition of i, holds. */
const firstZero = (browser, name, also = 'true') => browser.run(
    `const pass = tessera.frame.pass(), gradient = pass.gradient(pass.index(arguments[0]));
    for (let i = 0; i < gradient.length; ++i) if (gradient[i] === 0 && (${also})) return i;
    return -1;`,
    name);

async function ofTheModel(stage) {
  const {assert} = stage, browser = await stage.browse(stage.page('sl-vit'));
  const masked = await browser.run(`const pass = tessera.frame.pass();
    const step = pass.steps.find((each) => each.op === 'mask_diagonal' && each.module === 'blocks.5.attn');
    return pass.values[step.inputs[0]].name;`);
  assert.match(await reason(browser, masked, 66), /The diagonal is masked: no token attends to itself/);
  assert.match(await reason(browser, 'blocks.5.attn.scores', 0), /softmax gives this entry nothing \(a masked/);
  // 64 of the last block's 65 rows: the head reads the class token alone.
  const name = await browser.run(`const pass = tessera.frame.pass();
    const cut = pass.steps.filter((step) => step.op === 'slice').pop();
    return pass.values[cut.inputs[0]].name;`);
  const cell = await firstZero(browser, name);
  assert.ok(cell > 0, 'the class token is the first row');
  const words = await reason(browser, name, cell);
  assert.match(words, /Only entry 0 of axis 1 is read on/);
  assert.match(words, /the other 64 get nothing \(a head that reads the class token alone\)/);
  await stage.shoot(browser, 'scene-06-zero');
}

async function ofRelu(stage) {
  const browser = await stage.browse(stage.page('resnet56', '--image-size', '16'));
  const name = await browser.run(`const pass = tessera.frame.pass();
    return pass.values[pass.steps.find((step) => step.op === 'relu').inputs[0]].name;`);
  const cell = await firstZero(browser, name);
  stage.assert.match(await reason(browser, name, cell), /ReLU is off here/);
}

export async function run(stage) {
  await ofTheModel(stage);
  await ofRelu(stage);
  // The word "none" and a reason, not a 0, where no gradient ever flows.
  const browser = await stage.browse(stage.page('--lesson', 'decay'));
  const constant = await browser.run(
      `return tessera.frame.pass().values.findIndex((value) => value.kind === 'constant');`);
  stage.assert.ok(constant >= 0);
  await browser.run(
      `tessera.frame.go({value: arguments[0], gradient: true, cell: 0,
        time: 2 * tessera.frame.pass().steps.length});`,
      constant);
  stage.assert.match(await browser.text('#cell [role=note]'), /constant|no gradient/i);
}
