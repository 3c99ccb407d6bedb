// The drawings as views of the page: which is shown at which place, and what a click in it leads to.
(function (tessera) {
  'use strict';

  const draw = tessera.draw;
  if (!tessera.views) return;

  const moduleOf = (place, pass) => place.zoom === 'op' ? pass.steps[place.step].module
    : place.zoom === 'block' ? place.module : '';

  const go = (where) => tessera.frame.go(where);

  // Drawings of two passes say which one by the object; a place says it by its number.
  const goBetween = ({pass, ...where}) => go({pass: tessera.page.passes.indexOf(pass), ...where});

  const nameAt = (place, pass) => place.value >= 0 ? pass.values[place.value].name : undefined;

  // A stepper's time: what has not been computed by then is told, not shown.
  const whyNot = (place, pass, gradient) =>
    tessera.flow ? tessera.flow.whyNot(pass, place.value, gradient, place.time) : '';

  const states = new WeakMap();  // container -> the state of the attention drawn in it

  function attentionFor(place, pass) {
    const list = draw.attentionsBelow(pass, moduleOf(place, pass));
    const named = place.value < 0 ? -1
      : list.findIndex((a) => a.scores === place.value || a.probabilities === place.value);
    return {list, chosen: list[named >= 0 ? named : 0]};
  }

  tessera.views.register({
    id: 'attention', title: 'Attention', order: 20,
    shows: (place, pass) => attentionFor(place, pass).list.length > 0,
    key: (place) => `${place.pass} ${place.zoom} ${place.zoom === 'op' ? place.step : place.module}`,
    render(container, place, pass) {
      const {list, chosen} = attentionFor(place, pass), state = draw.attentionState(pass, chosen, place);
      states.set(container, state);
      container.replaceChildren(draw.attentionPanel(pass, list, {state, room: container.clientWidth,
        go: (where) => go({...where, head: state.values.head})}));
    },
    update(container, place, pass) {
      const state = states.get(container), {list} = attentionFor(place, pass);
      const a = list.find((each) => each.scores === place.value || each.probabilities === place.value)
        || list.find((each) => each.key === state.values.key);
      const {key, image, group, head, query} = draw.attentionState(pass, a, place).values;
      const chosen = a.scores === place.value || a.probabilities === place.value;
      if (chosen && place.cell >= 0) state.set({key, image, group, head, query});
      else if (place.head >= 0) state.set({key, head: place.head});
    },
  });

  tessera.views.register({
    id: 'drawn', title: 'Drawn', order: 15,
    shows: (place) => place.value >= 0,
    key: (place) => [place.pass, place.value, place.head,
      ...[false, true].map((gradient) => whyNot(place, tessera.page.passes[place.pass], gradient))].join(' '),
    render: (container, place, pass) => container.replaceChildren(draw.tensorPanel(pass, place.value,
      {go, head: place.head, cell: place.cell, whyNot: (gradient) => whyNot(place, pass, gradient)})),
    update: () => {},
  });

  tessera.views.register({
    id: 'picture', title: 'Picture', order: 30,
    shows: (place, pass) => place.zoom === 'model' && pass.index('input') >= 0 &&
      pass.values[pass.index('input')].shape.length === 4,
    key: (place) => String(place.pass),
    render: (container, place, pass) => container.replaceChildren(draw.inputPanel(pass, {go})),
    update: () => {},
  });

  tessera.views.register({
    id: 'ladder', title: 'Ladder', order: 40,
    shows: (place, pass) => place.zoom === 'model' && tessera.page.kind !== 'lesson' &&
      pass.values.some((value) => value.parameter),
    key: (place) => String(place.pass),
    render: (container, place, pass) => container.replaceChildren(draw.ladderPanel(pass, {go})),
    update: () => {},
  });

  tessera.views.register({
    id: 'terms', title: 'Terms', order: 50,
    shows: (place, pass) => place.zoom === 'model' && draw.hasTerms(pass),
    key: (place) => String(place.pass),
    render: (container, place, pass) => container.replaceChildren(...draw.termPanels(pass, {go}).map((panel) =>
      draw.element('section', {class: 'draw-term', data: {term: panel.name}},
        [draw.element('h3', {text: panel.title}), panel.element]))),
    update: () => {},
  });

  const besideKey = (place) => `${place.pass} ${moduleOf(place, tessera.page.passes[place.pass])} ${place.value}`;

  tessera.views.register({
    id: 'toggle', title: 'Switch terms off', order: 55,
    shows: () => (tessera.page.terms || []).length > 0,
    key: besideKey,
    render: (container, place, pass) => container.replaceChildren(draw.togglePanel(tessera.page,
      {go: goBetween, name: nameAt(place, pass), module: moduleOf(place, pass), place,
        room: container.clientWidth})),
    update: () => {},
  });

  tessera.views.register({
    id: 'compare', title: 'Side by side', order: 60,
    shows: (_, pass) => tessera.page.passes.some((other) => other !== pass && other.role !== 'term'),
    key: besideKey,
    render: (container, place, pass) => container.replaceChildren(draw.comparePanel(tessera.page,
      {pass, go: goBetween, name: nameAt(place, pass), module: moduleOf(place, pass), place,
        room: container.clientWidth})),
    update: () => {},
  });
})(globalThis.tessera = globalThis.tessera || {});
