// A student's first lesson: y = (a b + c)^2, stepped forward, then backward.
export const title = '1: the first lesson steps forward, then backward; a gradient not there yet is never 0';

/** {name: {value: [texts], gradient: [texts] or a word}} of all cards, as they are read. */
const read = (browser) => browser.run(`const cards = {};
  for (const card of document.querySelectorAll('.card')) {
    const of = (way) => {
      const table = card.querySelector('.small-numbers[data-way=' + way + ']');
      if (table) return [...table.querySelectorAll('.number')].map((number) => number.innerText);
      return card.querySelector('.numbers-missing[data-way=' + way + ']').dataset.state;
    };
    cards[card.dataset.value] = {value: of('value'), gradient: of('gradient')};
  }
  return cards;`);

export async function run(stage) {
  const {assert} = stage;
  const browser = await stage.browse(stage.page('--lesson', 'chain-rule'));
  let cards = await read(browser);
  assert.deepEqual(cards.a, {value: ['2'], gradient: 'not yet'});
  assert.deepEqual(cards.product, {value: ['6'], gradient: 'not yet'}, 'the first step has run');
  assert.deepEqual(cards.y, {value: 'not yet', gradient: 'not yet'});
  assert.match(await browser.text('.running'), /Forward: multiply[^]*y = a \* b[^]*product\s*= 2 · 3 = 6/);
  await stage.shoot(browser, 'scene-01-begin');

  await browser.press('ArrowRight', 'ArrowRight');
  cards = await read(browser);
  assert.deepEqual([cards.sum.value, cards.y.value], [['2'], ['4']]);
  assert.equal(cards.y.gradient, 'not yet');
  assert.equal(await browser.count('.numbers-missing'), 6, 'no gradient is there before the backward pass');

  await browser.press('ArrowRight');
  cards = await read(browser);
  assert.deepEqual([cards.y.gradient, cards.sum.gradient, cards.product.gradient], [['1'], ['4'], 'not yet']);
  assert.match(await browser.text('.running'), /Backward: square[^]*dL\/d\(y\) is 1[^]*= .*4/);
  await browser.press('ArrowRight', 'ArrowRight');
  cards = await read(browser);
  assert.deepEqual(['a', 'b', 'c'].map((name) => cards[name].gradient), [['12'], ['8'], ['4']]);
  const words = await browser.text('.running');
  assert.match(
      words,
      /From above came dL\/d\(product\) = 4[^]*dL\/d\(a\)\s*= 4 · 3 = 12[^]*dL\/d\(b\)\s*= 4 · 2 = 8/);
  await stage.shoot(browser, 'scene-01-backward');

  await browser.press('ArrowLeft');
  assert.equal((await read(browser)).a.gradient, 'not yet', 'a step back takes the gradient away again');
  await browser.press('End');
  assert.match(await browser.text('#now'), /whole pass/);
  await browser.press('Home');
  assert.equal((await read(browser)).sum.value, 'not yet');

  assert.equal(
      await browser.run(`return document.querySelector('.question').open;`), false,
      'the answer is folded away');
  await browser.click('.question summary');
  assert.match(await browser.text('.answer'), /0\.04/);
  await browser.click('.stepper button[aria-label^="one step on"]');
  assert.deepEqual((await read(browser)).sum.value, ['2'], 'the buttons step as the keys do');
}
