// The page opens from disk by itself: painted before its numbers are decoded, and no request leaves it.
export const title = 'the page opens from disk, paints within a second and asks for nothing';

export async function run(stage) {
  const {assert} = stage;
  const browser = await stage.browse(stage.page('sl-vit'));
  const paint =
      await browser.run(`return performance.getEntriesByName('first-contentful-paint')[0].startTime;`);
  assert.ok(paint < 1000, `first paint after ${paint} ms`);
  assert.equal(await browser.run(`return performance.getEntriesByType('resource').length;`), 0);
  const [values, steps] =
      await browser.run('const p = tessera.page.passes[0]; return [p.values.length, p.steps.length];');
  assert.ok(values > 200 && steps > 100, `${values} values, ${steps} steps`);
  const place =
      await browser.run(`const {place, page} = tessera, v = page.passes[0].index('blocks.5.attn.scores');
    const there = place.checked({...place.start, zoom: 'op', step: 3, time: 7, value: v, gradient: true, head: 3,
      cell: 70}, page.passes);
    const text = place.fragmentOf(there, page.passes);
    return [text, JSON.stringify(place.placeOf(text, page.passes)) === JSON.stringify(there)];`);
  assert.match(place[0], /gradient=blocks\.5\.attn\.scores&head=3&cell=0%2C0%2C1%2C5/);
  assert.ok(place[1], 'a fragment gives its place back');
}
