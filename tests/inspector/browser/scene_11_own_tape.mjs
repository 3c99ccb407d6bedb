// A C++ user with a graph of his own: the page that one call writes for his tape.
import {spawnSync} from 'node:child_process';
import {join} from 'node:path';

export const title = '11: a program\'s own tape has the same page: its names, its numbers, proofs';

export async function run(stage) {
  const {assert} = stage;
  const program = spawnSync(stage.tape, [], {cwd: stage.pages, encoding: 'utf8'});
  assert.equal(program.status, 0, program.stderr);
  const dw = program.stdout.trim().split(' ').map(Number);
  const browser = await stage.browse(join(stage.pages, 'tape.html'));
  assert.match(await browser.text('header'), /my graph/);
  const read = await browser.run(`const pass = tessera.frame.pass(), w = pass.index('w');
    return {kind: tessera.page.kind, gradient: [...pass.gradient(w)], names: pass.values.map((value) => value.name),
      proofs: pass.proofs[w].map((proof) => proof.ok)};`);
  assert.equal(read.kind, 'tape');
  assert.deepEqual(read.gradient, dw, 'the numbers that the program printed, to the last bit');
  for (const name of ['x', 'w', 'hidden']) assert.ok(read.names.includes(name), name);
  assert.ok(read.proofs.length > 0 && read.proofs.every((ok) => ok === true));
  await browser.run(`const pass = tessera.frame.pass();
    tessera.frame.go({value: pass.index('w'), gradient: true, cell: 0, time: 2 * pass.steps.length});`);
  assert.match(await browser.text('#cell-name'), /dL\/d\(w\)\[0, 0\]/);
  await stage.shoot(browser, 'scene-11-tape');
}
