// The engine behind a served page (tessera inspect --serve): proofs of any number by the whole model, another
// picture, a term switched off, one step of the optimizer.
(function (tessera) {
  'use strict';

  const mostBytes = 16 * 1024 * 1024;
  const pictureTypes = ['image/png', 'image/jpeg', 'image/bmp'];

  async function ask(path, body, type = 'application/json') {
    const reply = await fetch(path, {method: 'POST', headers: {'Content-Type': type}, body});
    if (reply.ok) return reply;
    const told = await reply.json().catch(() => ({}));
    throw new Error(told.error || `the engine answered ${reply.status}`);
  }

  /** The page object in a reply: its index in one line, then the numbers as they stand in the file. */
  async function passesIn(reply) {
    const bytes = new Uint8Array(await reply.arrayBuffer()), end = bytes.indexOf(10);
    const {page, decode} = tessera.store.read(JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))));
    await decode(new TextDecoder('windows-1252').decode(bytes.subarray(end + 1)), () => {});
    return page;
  }

  // The same place in other passes: its value and its step by their names.
  function placeIn(place, old, passes) {
    const {place: places} = tessera, before = old[place.pass], p = {...place};
    p.pass = p.pass < passes.length ? p.pass : 0;
    const pass = passes[p.pass], output = pass.index(before.values[before.steps[p.step].output].name);
    p.value = p.value < 0 ? -1 : pass.index(before.values[p.value].name);
    if (output >= 0 && pass.values[output].step >= 0) p.step = pass.values[output].step;
    if (places.stepAt(before, place.time).done) p.time = 2 * pass.steps.length;
    return places.checked(p, passes);
  }

  /** Shows other passes in the place of those that the page has. */
  function replacePasses(fresh) {
    const {page, frame} = tessera, old = [...page.passes];
    page.passes.splice(0, page.passes.length, ...fresh.passes);
    for (const key of ['comparisons', 'terms', 'left_out']) page[key] = fresh[key];
    if (!frame || !frame.place) return;
    const place = placeIn(frame.place, old, page.passes);
    frame.decoded = false;  // whatever was drawn from the numbers before is drawn anew
    frame.place = place;
    for (const part of frame.parts) part.update(place, frame.pass(), null);
    frame.refresh();
  }

  const losses = [];
  let working = null;  // what the engine is at

  /** One request after the other, so that no reply overtakes another. */
  async function change(what, request) {
    while (working) await working;
    const done = request();
    working = done.catch(() => {}).then(() => { working = null; });
    tell(`${what}\u2026`);
    try {
      const page = await passesIn(await done);
      replacePasses(page);
      tell('');
      return page;
    } catch (error) {
      tell(error.message);
      throw error;
    }
  }

  /** Another picture: a File that is a PNG, a JPEG or a BMP of at most 16 MiB. */
  async function picture(file) {
    if (!pictureTypes.includes(file.type)) return refuse(`${file.name}: a PNG, JPEG or BMP picture is wanted`);
    if (file.size > mostBytes) return refuse(`${file.name}: a picture of at most 16 MiB is wanted`);
    const page = await change(`running ${file.name}`, () => ask('/picture', file, file.type));
    losses.splice(0, losses.length);
    showLosses();
    return page;
  }

  function refuse(why) {
    tell(why);
    return Promise.reject(new Error(why));
  }

  /** Switches a term of the model off, or on again. */
  const term = (name, on) => change(`${name} ${on ? 'on' : 'off'}`,
    () => ask('/term', JSON.stringify({name, on})));

  /** One step of the optimizer, in the engine's memory alone. */
  async function step() {
    const before = tessera.page.passes[0].loss;
    const page = await change('taking a step', () => ask('/step', '{}'));
    if (!losses.length) losses.push(before);
    losses.push(page.passes[0].loss);
    showLosses();
    return page;
  }

  /** The whole model's proof of the number at a place. */
  async function prove({pass, value, cell}) {
    return (await ask('/prove', JSON.stringify({pass, value, cell}))).json();
  }

  tessera.serve = {prove, picture, term, step, losses};

  // ---- The controls, above the zooms ----

  function tell(words) {
    const state = document.getElementById('serve-state');
    if (state) state.textContent = words;
  }

  // What a person has caused and was told of already.
  const quietly = (promise) => { promise.catch(() => {}); };

  function showLosses() {
    const list = document.getElementById('serve-losses');
    if (!list) return;
    list.replaceChildren(...losses.slice(-8).map((loss, i, shown) => tessera.draw.element('li',
      {text: tessera.draw.short(loss, 5), 'aria-current': i === shown.length - 1 ? 'true' : null})));
    list.hidden = !losses.length;
  }

  function dropZone(element) {
    const input = element('input', {type: 'file', id: 'serve-picture', accept: pictureTypes.join(','),
      on: {change: () => { if (input.files[0]) quietly(picture(input.files[0])); }}});
    document.addEventListener('dragover', (event) => event.preventDefault());
    document.addEventListener('drop', (event) => {
      event.preventDefault();
      const file = event.dataTransfer && event.dataTransfer.files[0];
      if (file) quietly(picture(file));
    });
    return element('label', {class: 'serve-picture'}, ['Another picture (or drop one on the page): ', input]);
  }

  function render(container) {
    const {element} = tessera.draw, page = tessera.page;
    const properties = {class: 'serve', role: 'group', 'aria-label': 'the engine behind the page'};
    container.replaceChildren(element('div', properties, [
      element('button', {type: 'button', id: 'serve-step', text: 'One step of the optimizer',
        title: 'changes the weights in the engine\u2019s memory alone', on: {click: () => quietly(step())}}),
      element('ol', {id: 'serve-losses', class: 'serve-losses', 'aria-label': 'the loss, step by step', hidden: true}),
      page.passes[0].picture ? dropZone(element) : null,
      element('output', {id: 'serve-state', role: 'status'})]));
    showLosses();
  }

  if (tessera.views)
    tessera.views.register({id: 'serve', title: 'engine', where: 'top', shows: () => Boolean(tessera.page.served),
      key: () => '', render, update: () => {}});
})(globalThis.tessera = globalThis.tessera || {});
