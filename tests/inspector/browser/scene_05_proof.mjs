// "Is it true?": proofs of the whole model stored with the page, and of an op alone for any other cell.
import {fileURLToPath} from 'node:url';

export const title = '5: a stored proof of the whole model, the op alone for other cells, and a wrong one in red';

const name = 'blocks.1.attn.scores';

/** The place of the value, its proved cells and one that is not proved, whose gradient is not 0. */
const cells = (browser) => browser.run(`const pass = tessera.page.passes[0], value = pass.index('${name}');
  const proofs = pass.proofs[value], dx = pass.gradient(value);
  const proved = proofs.map((proof) => proof.cell);
  const largest = dx.reduce((best, x, i) => Math.abs(x) > Math.abs(dx[best]) ? i : best, 0);
  const other = dx.findIndex((x, i) => x !== 0 && !proved.includes(i));
  return {value, proved, largest, other, proof: proofs[0], shown: dx[largest]};`);

const go = (browser, {value, cell}) =>
  browser.run(`tessera.frame.go({value: ${value}, gradient: true, cell: ${cell}});`);

async function stored(browser, assert, found) {
  await go(browser, {value: found.value, cell: found.largest});
  const text = await browser.text('.proof[data-proof=whole]');
  assert.match(text, /whole model/);
  assert.match(text, /Stored with this page/);
  assert.equal((await browser.texts('.proof[data-proof=whole] .verdict.right')).length, 1, 'green');
  const rows = await browser.texts('.proof-table td');
  assert.equal(rows.length, 4, 'gradient, difference, error, step');
  assert.equal(Number(rows[3]), found.proof.step, 'the step');
  assert.equal((await browser.texts('.proofs button.right')).length, found.proved.length - 1, 'the other proofs');
}

async function opAlone(browser, assert, found) {
  await go(browser, {value: found.value, cell: found.other});
  assert.equal((await browser.texts('.proof')).length, 0, 'no stored proof of this cell');
  await browser.click('#prove-op');
  await browser.wait("return document.querySelector('.proof[data-proof=op] .verdict') !== null;", 'the proof');
  assert.match(await browser.text('.proof[data-proof=op]'), /op alone/);
  assert.equal((await browser.texts('.proof[data-proof=op] .verdict.right')).length, 1, 'green');
}

async function wrong(browser, assert, found) {
  await browser.run(`const proof = tessera.page.passes[0].proofs[${found.value}][0];
    Object.assign(proof, {difference: 1, error: 1, ok: false});
    tessera.frame.refresh();`);
  await go(browser, {value: found.value, cell: found.largest});
  await browser.wait("return document.querySelector('.proof .verdict.wrong') !== null;", 'red');
  assert.match(await browser.text('.proof'), /do not agree/);
}

export async function run(stage) {
  const {assert} = stage;
  const model = fileURLToPath(new URL('../../fixtures/sl-vit.safetensors', import.meta.url));
  const browser = await stage.browse(stage.page(model, '--proofs', '3'));
  const found = await cells(browser);
  assert.equal(found.proved.length, 3);
  assert.equal(found.proved[0], found.largest, 'the largest cell is proved');
  assert.ok(Math.abs(found.proof.analytic / found.shown - 1) < 1e-3, 'the gradient in double is the one shown');
  assert.ok(found.proof.ok && found.proof.error < 1e-5 && found.proof.step > 0);
  await stored(browser, assert, found);
  await stage.shoot(browser, 'scene_05');
  await opAlone(browser, assert, found);
  await wrong(browser, assert, found);
}
