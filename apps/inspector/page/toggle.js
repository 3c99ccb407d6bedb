// A term of the model switched off: what it does to the forward and to the backward pass.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  /** softmax of the first row of the logits, or null for a model without. */
  draw.probabilities = function (pass) {
    const value = pass.index('logits');
    if (value < 0 || pass.values[value].shape.length !== 2) return null;
    const row = Array.from(pass.value(value).subarray(0, pass.values[value].shape[1]));
    const top = Math.max(...row), weights = row.map((x) => Math.exp(x - top));
    const sum = weights.reduce((a, b) => a + b, 0);
    return weights.map((x) => x / sum);
  };

  /** Words on what a term's absence changes, from the losses and the probabilities of the target. */
  draw.termSentence = function (main, without, title) {
    const [p, q] = [main, without].map((pass) => {
      const probabilities = draw.probabilities(pass);
      return probabilities && pass.target >= 0 ? probabilities[pass.target] : null;
    });
    const change = without.loss - main.loss;
    const words = [change === 0 ? `Without the ${title} the loss stays the same, to the last bit.`
      : `Without the ${title} the loss ${change > 0 ? 'rises' : 'falls'} from ${draw.short(main.loss, 4)} to ` +
        `${draw.short(without.loss, 4)}.`];
    if (p !== null && q !== null && main.classes)
      words.push(`The target's probability goes from ${draw.short(p)} to ${draw.short(q)}.`);
    if (main.predicted !== without.predicted && without.predicted >= 0)
      words.push(`The prediction becomes ${without.classes[without.predicted] || `class ${without.predicted}`}.`);
    return words.join(' ');
  };

  // Terms of a page that belong to this pass; `pass` of a term is the place of the pass without it.
  const termsOf = (page) => (page.terms || []).filter((term) => page.passes[term.pass]);

  /**
   * Switches for the terms of the page: one off at a time, both results beside each other. go as in passesBeside().
   * null for a page without passes that lack a term.
   */
  draw.togglePanel = function (page, {go = null, name, module = '', place = {}, room} = {}) {
    const terms = termsOf(page), main = page.passes[0];
    if (!terms.length) return null;
    const element = draw.element('section', {class: 'draw-toggle'});
    let off = -1;
    const switches = () => draw.element('div', {class: 'draw-switches', role: 'group', 'aria-label': 'terms'},
      terms.map((term, i) => {
        const button = draw.element('button', {type: 'button', role: 'switch', class: 'draw-switch',
          'aria-checked': String(i !== off), data: {term: term.name}, on: {click: () => {
            off = i === off ? -1 : i;
            build();
            element.querySelector(`[data-place="${i}"]`).focus();
          }}}, [draw.element('span', {class: 'draw-switch-state', text: i === off ? 'off' : 'on'}),
          draw.element('span', {text: term.title || term.name})]);
        button.dataset.place = i;
        return button;
      }));
    function build() {
      const parts = [switches()];
      if (off < 0) {
        parts.push(draw.element('p', {class: 'draw-sentence', text: 'All terms are on, as the model was made. ' +
          'Switch one off: the same picture and the same weights run without it, forward and backward.'}));
      } else {
        const without = page.passes[terms[off].pass], title = terms[off].title || terms[off].name;
        parts.push(draw.element('p', {class: 'draw-sentence', 'aria-live': 'polite',
          text: draw.termSentence(main, without, title)}),
        draw.passesBeside([main, without], ['with it', 'without it'], {name, module, go, place, room}));
      }
      element.replaceChildren(...parts);
    }
    build();
    return element;
  };
})(globalThis.tessera = globalThis.tessera || {});
