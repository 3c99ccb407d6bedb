// The zooms: the path from the model to the op, the tabs of what can be shown there, and the view that is.
(function(tessera) {
'use strict';

const {modules, views} = tessera;
const element = (...words) => tessera.draw.element(...words);
const own = {};  // the zooms' own views: {title(place, pass), render(container, place, pass, before)}
let bar = '', shown = null;

const stepTitle = (pass, step) => `${pass.steps[step].op} \u2192 ` +
    modules.shortName(pass.values[pass.steps[step].output].name, pass.steps[step].module);

/** To a zoom, at what the place is about. */
function to(zoom) {
  const {frame} = tessera, {place} = frame, pass = frame.pass();
  const module = place.module || modules.pathsTo(pass.steps[place.step].module)[0] || '';
  if (zoom === 'op') {
    const made = place.value < 0 ? -1 : modules.stepOf(pass, place.value);
    const step = place.zoom === 'op' || made < 0 ? place.step : made;
    frame.go({zoom, step, time: place.time, value: place.value, cell: place.cell});
  } else {
    frame.go(zoom === 'block' ? {zoom, module, value: place.value, cell: place.cell} : {zoom});
  }
}

/** The op or module before (-1) or behind (1) the one shown. */
function neighbour(direction) {
  const {frame} = tessera, {place} = frame, pass = frame.pass();
  if (place.zoom === 'op') {
    const step = place.step + direction;
    if (step >= 0 && step < pass.steps.length) frame.go({step});
  } else if (place.zoom === 'block') {
    const node = modules.node(pass, place.module);
    if (!node.parent) return;
    const next = node.parent.children[node.parent.children.indexOf(node) + direction];
    if (next) frame.go({module: next.path});
  }
}

const crumb = (text, current, click) => element(
    'button', {type: 'button', class: 'crumb', text, 'aria-current': current ? 'page' : null, on: {click}});

function crumbs(place, pass) {
  const {frame} = tessera, list = [crumb('model', place.zoom === 'model', () => frame.go({zoom: 'model'}))];
  if (place.zoom === 'model') return list;
  for (const path of modules.pathsTo(place.module)) {
    const label = modules.segments(path).pop();
    list.push(crumb(
        label, place.zoom === 'block' && path === place.module,
        () => frame.go({zoom: 'block', module: path})));
  }
  if (place.zoom === 'op')
    list.push(crumb(stepTitle(pass, place.step), true, () => frame.go({zoom: 'op', view: ''})));
  return list;
}

function tabs(place, pass) {
  const list = [{id: '', title: own[place.zoom].title(place, pass)}, ...views.at('main', place, pass)];
  if (list.length < 2) return [];
  return [element(
      'div', {class: 'tabs', role: 'tablist', 'aria-label': 'views'},
      list.map((view) => element('button', {
                 type: 'button',
                 role: 'tab',
                 class: 'tab',
                 id: `tab-${view.id || 'own'}`,
                 text: view.title,
                 'aria-selected': String(view.id === place.view),
                 'aria-controls': 'view',
                 on: {click: () => tessera.frame.go({view: view.id})}
               })))];
}

function arrows(place) {
  if (place.zoom === 'model') return [];
  const button = (text, title, direction) => element('button', {
    type: 'button',
    class: 'arrow',
    text,
    title,
    'aria-label': title,
    on: {click: () => neighbour(direction)}
  });
  const what = place.zoom === 'op' ? 'op' : 'module';
  return [button('\u2039', `the ${what} before ( [ )`, -1), button('\u203a', `the ${what} behind ( ] )`, 1)];
}

function updateBar(place, pass) {
  const key = [
    place.pass, place.zoom, place.module, place.zoom === 'op' ? place.step : '', place.view, place.value,
    tessera.frame.decoded
  ].join(' ');
  if (key === bar) return;
  bar = key;
  const focused = document.activeElement && document.activeElement.id;
  document.getElementById('zoom').replaceChildren(
      element('div', {class: 'crumbs'}, [...crumbs(place, pass), ...arrows(place)]), ...tabs(place, pass));
  if (focused && focused.startsWith('tab-') && document.getElementById(focused))
    document.getElementById(focused).focus();
}

function renderOwn(place, pass) {
  const box = document.getElementById('view'), key = `own ${place.zoom}`;
  if (!shown || shown.key !== key) {
    shown = {key, container: element('div', {class: `zoom-${place.zoom}`})};
    box.replaceChildren(shown.container);
    box.scrollTop = 0;
  }
  own[place.zoom].render(shown.container, place, pass);
}

function renderView(view, place, pass) {
  const box = document.getElementById('view'), key = `${views.keyOf(view, place)} ${tessera.frame.decoded}`;
  if (shown && shown.key === key) {
    if (view.update) view.update(shown.container, place, pass);
    return;
  }
  shown = {key, container: element('div', {class: 'registered', data: {view: view.id}})};
  box.replaceChildren(shown.container);
  box.scrollTop = 0;
  view.render(shown.container, place, pass);
}

function update(place, pass) {
  updateBar(place, pass);
  const view = place.view && views.at('main', place, pass).find((each) => each.id === place.view);
  if (view && tessera.frame.decoded)
    renderView(view, place, pass);
  else
    renderOwn(place, pass);
}

let top = [];

/** The views that are always there, above the zooms. */
function updateTop(place, pass) {
  if (!tessera.frame.decoded) return;
  const box = document.getElementById('top'), wanted = views.at('top', place, pass);
  const next = wanted.map((view) => {
    const key = views.keyOf(view, place), old = top.find((each) => each.key === key);
    if (old) {
      if (view.update) view.update(old.container, place, pass);
      return old;
    }
    const container = element('div', {data: {view: view.id}});
    view.render(container, place, pass);
    return {key, container};
  });
  if (next.length !== top.length || next.some((each, i) => each !== top[i]))
    box.replaceChildren(...next.map((each) => each.container));
  top = next;
}

tessera.zoom = {
  update,
  updateTop,
  to,
  neighbour,
  own,
  stepTitle
};
})(globalThis.tessera = globalThis.tessera || {});
