'use strict';

// Search without a server: every word must occur in an entry of search-index.js, [title, page or kind, address, text].

// A word without its ending, so that "resume" finds "Resuming".
function stem(word) {
  return word.length > 4 ? word.replace(/(ing|es|ed|e|s)$/, '') : word;
}

// The words that were typed.
function wordsOf(typed) {
  return typed.toLowerCase().split(/\s+/).filter(Boolean);
}

// How well an entry answers the words; 0: not at all. A title counts more than a text, its beginning most of all.
function score(entry, words) {
  const title = entry[0].toLowerCase();
  const page = entry[1].toLowerCase();
  const text = entry[3].toLowerCase();
  let total = 0;
  for (const whole of words) {
    const word = stem(whole);
    if (title === whole) total += 40;
    else if (title.startsWith(word)) total += 20;
    else if (title.includes(word)) total += entry[3] ? 10 : 4;  // within a name of the API
    else if (page.includes(word)) total += 3;
    else if (text.includes(word)) total += 1 + (text.indexOf(word) < 200 ? 1 : 0);
    else return 0;
  }
  const phrase = words.join(' ');
  if (title === phrase) total += 40;
  else if (title.includes(phrase)) total += 10;
  else if (text.includes(phrase)) total += 4;
  return total + (entry[3] ? 8 : 0) - Math.min(title.length, 60) / 60;
}

// The best entries for what was typed, best first.
function find(index, typed, most) {
  const words = wordsOf(typed);
  if (!words.length) return [];
  const found = [];
  for (const entry of index) {
    const points = score(entry, words);
    if (points > 0) found.push([points, entry]);
  }
  found.sort((a, b) => b[0] - a[0]);
  return found.slice(0, most).map(each => each[1]);
}

// The text around the first of the words, as [part, whether it is one of the words].
function snippet(text, words, length) {
  const lower = text.toLowerCase();
  const places = words.map(word => lower.indexOf(word)).filter(place => place >= 0);
  const from = Math.max(0, (places.length ? Math.min(...places) : 0) - length / 3);
  const part = (from ? '… ' : '') + text.slice(from, from + length) + (from + length < text.length ? ' …' : '');
  const escaped = words.map(word => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return part.split(new RegExp(`(${escaped.join('|')})`, 'i')).map((piece, i) => [piece, i % 2 === 1]);
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function line(entry, words) {
  const item = element('li');
  item.setAttribute('role', 'option');
  const link = element('a');
  link.href = entry[2];
  link.append(element('b', '', entry[0]), element('span', 'in', entry[1]));
  if (entry[3]) {
    const text = element('span', 'text');
    for (const [piece, marked] of snippet(entry[3], words.map(stem), 150))
      text.append(marked ? element('mark', '', piece) : piece);
    link.append(text);
  }
  item.append(link);
  return item;
}

function attach(input, list) {
  let here = -1;
  const links = () => [...list.querySelectorAll('a')];
  const show = () => {
    const words = wordsOf(input.value);
    const found = find(searchIndex, input.value, 20);
    list.replaceChildren(...found.map(entry => line(entry, words)));
    if (words.length && !found.length) list.append(element('li', 'none', 'Nothing has all of these words.'));
    list.hidden = !words.length;
    input.setAttribute('aria-expanded', String(!list.hidden));
    move(found.length ? 0 : -1);
  };
  const move = to => {
    const all = links();
    here = all.length ? (to + all.length) % all.length : -1;
    all.forEach((link, i) => link.classList.toggle('here', i === here));
    if (here >= 0) all[here].scrollIntoView({block: 'nearest'});
  };
  input.addEventListener('input', show);
  input.addEventListener('keydown', event => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      move(here + (event.key === 'ArrowDown' ? 1 : -1));
      event.preventDefault();
    } else if (event.key === 'Enter' && here >= 0) {
      location.href = links()[here].href;
      list.hidden = true;
    } else if (event.key === 'Escape') {
      list.hidden = true;
      input.blur();
    }
  });
  document.addEventListener('click', event => {
    if (!event.target.closest('.search') || event.target.closest('#results a')) list.hidden = true;
  });
  document.addEventListener('keydown', event => {
    if (event.key !== '/' || event.target === input) return;
    input.focus();
    event.preventDefault();
  });
}

if (typeof document === 'undefined') module.exports = {find, snippet};
else attach(document.getElementById('search'), document.getElementById('results'));
