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

  const passWithout = (page, term) => term.pass === null ? undefined : page.passes[term.pass];

  // A served page has the engine make a pass without any term; another has those that it was written with.
  const termsOf = (page) => (page.terms || []).filter((term) => page.served || passWithout(page, term));

  /** What else could be switched off, and how; null where there is nothing. */
  function missingSentence(page) {
    const missing = (page.terms || []).filter((term) => !page.served && !passWithout(page, term));
    if (!missing.length) return null;
    return draw.element('p', {class: 'draw-note', text: 'This model has terms that this page cannot switch off: ' +
      `${missing.map((term) => `${term.title} (${term.name})`).join(', ')}. Write the page with --without ` +
      `${missing.map((term) => term.name).join(',')}, or show it with --serve.`});
  }

  let off = null;  // the name of the term that is switched off

  // The page is drawn anew when the engine has answered.
  function switchTerm(page, term, build) {
    const on = off === term.name;
    off = on ? null : term.name;
    if (page.served) tessera.serve.term(term.name, on).catch(() => { off = null; });
    else build();
  }

  function switches(page, terms, build) {
    return draw.element('div', {class: 'draw-switches', role: 'group', 'aria-label': 'terms'},
      terms.map((term) => draw.element('button', {type: 'button', role: 'switch', class: 'draw-switch',
        'aria-checked': String(off !== term.name), data: {term: term.name},
        on: {click: () => switchTerm(page, term, build)}},
      [draw.element('span', {class: 'draw-switch-state', text: off === term.name ? 'off' : 'on'}),
        draw.element('span', {text: term.title || term.name})])));
  }

  /**
   * Switches for the terms of the page: one off at a time, both results beside each other. go as in passesBeside().
   * null for a page whose model has no terms.
   */
  draw.togglePanel = function (page, {go = null, name, module = '', place = {}, room} = {}) {
    const terms = termsOf(page), main = page.passes[0], missing = missingSentence(page);
    if (!terms.length && !missing) return null;
    const element = draw.element('section', {class: 'draw-toggle'});
    function build() {
      const term = terms.find((each) => each.name === off), without = term && passWithout(page, term);
      const parts = terms.length ? [switches(page, terms, () => {
        const {term: clicked} = document.activeElement.dataset;
        build();
        element.querySelector(`[data-term="${clicked}"]`).focus();
      })] : [];
      if (without) {
        parts.push(draw.element('p', {class: 'draw-sentence', 'aria-live': 'polite',
          text: draw.termSentence(main, without, term.title || term.name)}),
        draw.passesBeside([main, without], ['with it', 'without it'], {name, module, go, place, room}));
      } else if (terms.length) {
        parts.push(draw.element('p', {class: 'draw-sentence', text: 'All terms are on, as the model was made. ' +
          'Switch one off: the same picture and the same weights run without it, forward and backward.'}));
      }
      element.replaceChildren(...parts, ...(missing ? [missing] : []));
    }
    build();
    return element;
  };
})(globalThis.tessera = globalThis.tessera || {});
