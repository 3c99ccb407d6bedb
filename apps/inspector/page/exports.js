// A tensor of the page as a file or as text for another program, exactly.
(function(tessera) {
'use strict';

const {texts, planes, place: places} = tessera;
const element = (...words) => tessera.draw.element(...words);

function download(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], {type}));
  const link = element('a', {href: url, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch (error) {
      // Not allowed here: the older way below is.
    }
  const box = element('textarea', {class: 'copied', 'aria-hidden': 'true'});
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand('copy');
  box.remove();
  return done;
}

// A name of a tensor as the name of a file.
const fileName = (name, gradient, slice, kind) =>
    `${name.replace(/[^\w.-]+/g, '_')}${gradient ? '.gradient' : ''}${slice ? `.${slice}` : ''}.${kind}`;

/** The tensor, or the matrix of it that is shown: {numbers, shape, slice}. */
function chosen(pass, i, gradient, matrixAlone) {
  const all = planes.read(pass, i, gradient), {shape} = pass.values[i];
  if (!matrixAlone) return {numbers: all, shape, slice: ''};
  const plane = planes.at(pass, i, tessera.frame.place);
  return {
    numbers: all.subarray ? all.subarray(plane.offset, plane.offset + plane.rows * plane.cols) :
                            all.slice(plane.offset, plane.offset + plane.rows * plane.cols),
    shape: shape.slice(-2),
    slice: plane.lead.join('-')
  };
}

const ways = [
  ['CSV', (t, value, name) => download(name('csv'), texts.csv(t.numbers, t.shape, value.dtype), 'text/csv')],
  [
    'safetensors',
    (t, value, name) => download(
        name('safetensors'), texts.safetensors(value.name, t.numbers, t.shape, value.dtype),
        'application/octet-stream')
  ],
  ['NumPy', (t, value) => copy(texts.python('np', t.numbers, t.shape, value.dtype))],
  ['PyTorch', (t, value) => copy(texts.python('torch', t.numbers, t.shape, value.dtype))],
];

function row(pass, i, gradient, alone, said) {
  const value = pass.values[i];
  return element(
      'div', {class: 'export-row', role: 'group', 'aria-label': gradient ? 'the gradient' : 'the value'}, [
        element('span', {text: gradient ? 'gradient' : 'value'}),
        ...ways.map(([title, act]) => element('button', {
                      type: 'button',
                      text: /Num|Py/.test(title) ? `copy as ${title}` : title,
                      data: {export: `${gradient ? 'gradient' : 'value'}-${title}`},
                      on: {
                        async click() {
                          const tensor = chosen(pass, i, gradient, alone.checked);
                          const done = await act(
                              tensor, value, (kind) => fileName(value.name, gradient, tensor.slice, kind));
                          said.textContent = done === undefined ? 'saved' :
                              done                              ? 'copied' :
                                                                  'the browser does not allow copying here';
                        }
                      }
                    }))
      ]);
}

/** The menu of all ways, for the value and, where it has one, the gradient. */
function menu(pass, i) {
  const value = pass.values[i], said = element('output', {role: 'status'});
  const alone = element('input', {type: 'checkbox'});
  const matrices = places.size(planes.sizesOf(value.shape).lead) > 1;
  return element('details', {class: 'export'}, [
    element('summary', {text: 'export'}),
    element(
        'div', {class: 'export-menu'},
        [
          row(pass, i, false, alone, said), ...(value.hasGradient ? [row(pass, i, true, alone, said)] : []),
          ...(matrices ? [element('label', {}, [alone, ' only the matrix shown'])] : []),
          element('small', {text: 'Every number with the digits that it needs to be read back exactly.'}),
          said
        ])
  ]);
}

tessera.exports = {
  menu,
  copy
};
})(globalThis.tessera = globalThis.tessera || {});
