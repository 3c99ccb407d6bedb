// The search over names of tensors, modules and ops.
(function(tessera) {
'use strict';

const element = (...words) => tessera.draw.element(...words);
const most = 12;
let box = null, list = null, found = [], chosen = 0;

/** How well a name fits the words, all of which must occur in it; lower is better, -1 for not at all. */
function distance(name, words) {
  const low = name.toLowerCase();
  if (!words.every((word) => low.includes(word))) return -1;
  return low.length + (low.endsWith(words[words.length - 1]) ? 0 : 20) + low.indexOf(words[0]) / 10;
}

function candidates(pass) {
  const modules = [...tessera.modules.tree(pass).nodes.keys()].filter(Boolean).map(
      (path) => ({name: path, what: 'module', go: {zoom: 'block', module: path}}));
  const values = pass.values.map((value) => {
    const step = tessera.modules.stepOf(pass, value.index);
    const names = [value.name, ...value.aliases], words = names.join(' = ');
    const kind = value.parameter ? 'parameter' : value.step < 0 ? value.kind : pass.steps[value.step].op;
    return {
      name: words,
      what: `${kind} ${tessera.draw.shapeText(value.shape)}`,
      go: step < 0 ? {value: value.index} : {zoom: 'op', step, value: value.index}
    };
  });
  return [...modules, ...values];
}

function look() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  found = !words.length ? [] :
                          candidates(tessera.frame.pass())
                              .map((each) => [distance(each.name, words), each])
                              .filter(([far]) => far >= 0)
                              .sort((a, b) => a[0] - b[0])
                              .map(([, each]) => each);
  chosen = 0;
  show(words.length > 0);
}

function show(asked) {
  const rows = found.slice(0, most).map(
      (each, i) => element(
          'li', {
            role: 'option',
            id: `found-${i}`,
            'aria-selected': String(i === chosen),
            on: {
              mousedown: (event) => {
                event.preventDefault();
                take(i);
              }
            }
          },
          [element('span', {text: each.name}), element('small', {text: each.what})]));
  if (asked && found.length > most)
    rows.push(element('li', {class: 'more', text: `${found.length - most} more`}));
  if (asked && !found.length) rows.push(element('li', {class: 'more', text: 'no name has these words'}));
  list.replaceChildren(...rows);
  list.hidden = !rows.length;
  box.setAttribute('aria-expanded', String(rows.length > 0));
  box.setAttribute('aria-activedescendant', found.length ? `found-${chosen}` : '');
}

function take(i) {
  if (!found[i]) return;
  const {go} = found[i];
  close();
  box.blur();
  tessera.frame.go(go);
}

function close() {
  box.value = '';
  found = [];
  show(false);
}

function key(event) {
  const count = Math.min(found.length, most);
  if (event.key === 'Enter')
    take(chosen);
  else if (event.key === 'Escape') {
    close();
    box.blur();
  } else if (count && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
    chosen = (chosen + (event.key === 'ArrowDown' ? 1 : count - 1)) % count;
    show(true);
  } else {
    return;
  }
  event.preventDefault();
  event.stopPropagation();
}

function build() {
  box = element('input', {
    type: 'search',
    id: 'search',
    placeholder: 'find a name  /',
    role: 'combobox',
    autocomplete: 'off',
    spellcheck: 'false',
    'aria-label': 'Find a tensor, a parameter or a module by its name',
    'aria-expanded': 'false',
    'aria-controls': 'found',
    'aria-autocomplete': 'list',
    on: {input: look, keydown: key, blur: close}
  });
  list = element('ul', {id: 'found', role: 'listbox', 'aria-label': 'names found', hidden: true});
  return element('div', {class: 'search'}, [box, list]);
}

tessera.search = {
  element: build,
  focus: () => box.focus()
};
})(globalThis.tessera = globalThis.tessera || {});
