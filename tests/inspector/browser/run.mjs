// node run.mjs --tessera PROGRAM [--tape PROGRAM] [--shots FOLDER] [NAME...]: every scene_*.mjs of this folder,
// or those named, in a real browser. A scene exports `title` and `run(stage)`; it fails by throwing. Exit status 77:
// skipped.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, readdirSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

import {Browser, missing} from './browser.mjs';

const folder = dirname(resolve(process.argv[1]));

function options() {
  const found = {names: [], tessera: 'build/tessera', tape: 'build/tests/own_tape', shots: ''};
  for (let i = 2; i < process.argv.length; ++i) {
    const word = process.argv[i];
    if (['--tessera', '--tape', '--shots'].includes(word))
      found[word.slice(2)] = resolve(process.argv[++i]);
    else
      found.names.push(word);
  }
  return found;
}

/** What a scene gets: pages made once, browsers that end with it, screenshots where a folder is given. */
class Stage {
  constructor(found, pages) {
    const {tessera, tape, shots} = found;
    Object.assign(this, {tessera, tape: resolve(tape), shots, pages, browsers: [], assert});
  }

  /** The page that `tessera inspect ARGUMENTS --out FILE` writes; the same arguments give the same file.
   * Proofs take a quarter of a minute: a scene that wants them says `--proofs N`. */
  page(...words) {
    const path = join(this.pages, `${words.join('_').replace(/[^\w.-]+/g, '_')}.html`);
    if (!readdirSync(this.pages).some((name) => join(this.pages, name) === path)) {
      const proofs = words.includes('--proofs') || words.includes('--lesson') ? [] : ['--proofs', '0'];
      const run = spawnSync(this.tessera, ['inspect', ...words, ...proofs, '--out', path], {encoding: 'utf8'});
      assert.equal(run.status, 0, `tessera inspect ${words.join(' ')}: ${run.stderr}`);
    }
    return path;
  }

  browse(path, how = {}) {
    return this.visit(pathToFileURL(path) + (how.fragment || ''), how);
  }

  async visit(url, how = {}) {
    const browser = await Browser.start(how);
    this.browsers.push(browser);
    await browser.open(url);
    const decoded = 'return tessera.page && tessera.page.passes.every((pass) => pass.decoded);';
    if (!how.plain) await browser.wait(decoded, 'the numbers');
    return browser;
  }

  /** Screenshots at both widths, dark and light, to be looked at. */
  async shoot(browser, name) {
    if (!this.shots) return;
    mkdirSync(this.shots, {recursive: true});
    for (const [width, height] of [[1280, 900], [1920, 1080]])
      for (const dark of [false, true]) {
        await browser.resize(width, height);
        await browser.dark(dark);
        await browser.run('return new Promise((r) => requestAnimationFrame(() => setTimeout(r, 60)));');
        await browser.screenshot(join(this.shots, `${name}-${width}-${dark ? 'dark' : 'light'}.png`));
      }
    await browser.resize(1280, 900);
    await browser.dark(false);
  }

  async end() {
    for (const browser of this.browsers.splice(0)) {
      const complaints = await browser.complaints();
      await browser.stop();
      assert.deepEqual(complaints, [], 'the page complained');
    }
  }
}

async function play(file, stage) {
  const scene = await import(pathToFileURL(join(folder, file)));
  const start = Date.now();
  try {
    await scene.run(stage);
    await stage.end();
    process.stdout.write(`ok    ${scene.title} (${((Date.now() - start) / 1000).toFixed(1)} s)\n`);
    return true;
  } catch (error) {
    process.stdout.write(`FAILED ${scene.title} (${file})\n${error.stack}\n`);
    await stage.end().catch(() => {});
    return false;
  }
}

async function main() {
  const lacks = missing();
  if (lacks) {
    process.stdout.write(`skipped: the inspector's scenes in a browser: ${lacks}\n`);
    process.exit(77);
  }
  const found = options(), {names} = found;
  const pages = mkdtempSync(join(tmpdir(), 'tessera-scenes-'));
  const files = readdirSync(folder)
                    .filter((file) => /^scene_.*\.mjs$/.test(file))
                    .sort()
                    .filter((file) => !names.length || names.some((name) => file.includes(name)));
  let failed = 0;
  for (const file of files) failed += await play(file, new Stage(found, pages)) ? 0 : 1;
  rmSync(pages, {recursive: true, force: true});
  process.stdout.write(`${files.length - failed} of ${files.length} scenes passed\n`);
  process.exit(failed || !files.length ? 1 : 0);
}

main();
