// Opens the page: what it holds at once, its numbers when they are decoded.
(function(tessera) {
'use strict';

if (typeof document === 'undefined') return;
const {frame} = tessera;

function tellState(place) {
  document.body.dataset.zoom = place.zoom;
  document.body.dataset.view = place.view || 'own';
}

const page = tessera.store.page();
document.body.dataset.kind = page.kind;
for (const part
         of [{update: tellState}, tessera.header, tessera.timeline, {update: tessera.zoom.updateTop},
             tessera.zoom, tessera.cellPanel, tessera.numbersPanel])
  frame.add(part);
frame.begin();
tessera.keys.listen();
const progress = (pass, part) => {
  const state = document.getElementById('state');
  if (state) state.textContent = `reading the numbers: ${Math.floor(100 * part)} %`;
};
tessera.store.open(progress).then(frame.refresh, (error) => {
  document.getElementById('state').textContent = `The numbers cannot be read: ${error.message}`;
});
})(globalThis.tessera = globalThis.tessera || {});
