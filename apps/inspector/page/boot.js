(function (tessera) {
  'use strict';

  // Opens the page: what it holds at once, its numbers when they are decoded.
  if (typeof document === 'undefined') return;
  const main = document.getElementById('main');
  const line = (text) => {
    const paragraph = document.createElement('p');
    paragraph.textContent = text;
    main.append(paragraph);
    return paragraph;
  };
  const page = tessera.store.page();
  line(page.title);
  const pass = page.passes[0];
  const state = line(`${pass.values.length} values, ${pass.steps.length} steps; decoding`);
  tessera.store.open().then(
    () => { state.textContent = `${pass.values.length} values, ${pass.steps.length} steps, loss ${pass.loss}`; },
    (error) => { state.textContent = `The numbers cannot be read: ${error.message}`; });
})(globalThis.tessera = globalThis.tessera || {});
