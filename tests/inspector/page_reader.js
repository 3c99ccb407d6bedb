'use strict';

// Opens a page of the inspector in node, as a browser would: its own scripts, its index, its data.

const fs = require('fs');
const vm = require('vm');

/** The text between the first `start` and the first `end` behind it. */
function between(text, start, end) {
  const from = text.indexOf(start);
  if (from < 0) throw new Error(`no ${start} in the page`);
  return text.slice(from + start.length, text.indexOf(end, from + start.length));
}

/** The file's text as the browser reads it, with its normalisation of line ends. */
function textOfFile(path) {
  const text = new TextDecoder('windows-1252').decode(fs.readFileSync(path));
  return text.replace(/\r\n?/g, '\n').replace(/\0/g, '\ufffd');
}

let loaded = '';

/** {tessera, page}: the page's own object of scripts, and its data with every number decoded. */
async function openPage(path) {
  const text = textOfFile(path);
  const script = between(text, '</script>\n<script>\n', '</script>');
  if (script !== loaded) vm.runInThisContext(loaded = script, {filename: path});  // all pages have the same one
  const tessera = globalThis.tessera;
  const {page, decode} = tessera.store.read(JSON.parse(between(text, 'id="pass-index">', '</script>')));
  await decode(between(text, 'id="pass-data">', '</script>'), () => {});
  tessera.catalog = page.catalog;
  tessera.page = page;
  return {tessera, page};
}

module.exports = {openPage, textOfFile, between};
