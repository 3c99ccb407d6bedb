// The keyboard, and the sheet that tells what its keys do.
(function(tessera) {
'use strict';

const element = (...words) => tessera.draw.element(...words);

const sheet = [
  ['\u2192  \u2190', 'one step on, one step back: forward first, then backward'],
  ['Home  End', 'the first step; the whole pass'],
  ['Space', 'play and pause'],
  ['1  2  3', 'zoom: model, block, op'],
  ['[  ]', 'the block or op before and behind'],
  ['g', 'value or gradient of the chosen tensor'],
  ['n', 'to the numbers; there arrow keys read, Enter opens a number'],
  [',  .', 'the number looked at before, and back again'],
  ['p', 'prove the chosen gradient'],
  ['/', 'find a name'],
  ['t', 'dark, light, as the system'],
  ['Esc', 'close what is open; then one zoom out'],
  ['?', 'this sheet'],
];

let dialog = null;

function build() {
  const rows =
      sheet.map(([keys, does]) => element('tr', {}, [
                  element('th', {scope: 'row'}, keys.split('  ').map((key) => element('kbd', {text: key}))),
                  element('td', {text: does})
                ]));
  dialog = element('dialog', {id: 'help', 'aria-labelledby': 'help-title'}, [
    element('h2', {id: 'help-title', text: 'How to read this page'}),
    element('p', {
      text: 'One picture went through the model and its loss back: every number of both ways is here. ' +
          'Click a box to go in, click a number to see the sum that made it. The address of the page holds ' +
          'the place you are at: send it to somebody, and they see the same.'
    }),
    element('p', {
      text: 'Green-blue is forward, violet is backward. "Not yet" is drawn where the pass has not come, ' +
          'which is not the number 0; where no gradient flowed at all, the reason is told.'
    }),
    element('table', {}, [element('tbody', {}, rows)]),
    element('button', {type: 'button', text: 'close', on: {click: () => dialog.close()}}),
  ]);
  document.body.append(dialog);
}

tessera.help = {
  open() {
    if (!dialog) build();
    if (!dialog.open) dialog.showModal();
  },
};

const zooms = ['model', 'block', 'op'];

function outward() {
  const {frame} = tessera, {zoom, cell} = frame.place;
  if (cell >= 0)
    frame.go({cell: -1});
  else if (zoom !== 'model')
    tessera.zoom.to(zooms[zooms.indexOf(zoom) - 1]);
}

const actions = {
  'ArrowRight': () => tessera.timeline.move(1),
  'ArrowLeft': () => tessera.timeline.move(-1),
  'Home': () => tessera.timeline.first(),
  'End': () => tessera.timeline.last(),
  ' ': () => tessera.timeline.play(),
  '1': () => tessera.zoom.to('model'),
  '2': () => tessera.zoom.to('block'),
  '3': () => tessera.zoom.to('op'),
  '[': () => tessera.zoom.neighbour(-1),
  ']': () => tessera.zoom.neighbour(1),
  'g': () => tessera.frame.go({gradient: !tessera.frame.place.gradient}),
  'n': () => tessera.numbersPanel.focus(),
  ',': () => tessera.cellPanel.back(),
  '.': () => tessera.cellPanel.forward(),
  'p': () => tessera.proof.ask(),
  '/': () => tessera.search.focus(),
  't': () => tessera.header.switchTheme(),
  '?': () => tessera.help.open(),
  'Escape': outward,
};

// A key that the focused control takes for itself is left to it.
function isTaken(event) {
  const {target} = event;
  if (event.ctrlKey || event.altKey || event.metaKey || document.querySelector('dialog[open]')) return true;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return true;
  return event.key === ' ' && /^(BUTTON|SUMMARY)$/.test(target.tagName);
}

function listen() {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || isTaken(event) || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
}

tessera.keys = {listen};
})(globalThis.tessera = globalThis.tessera || {});
