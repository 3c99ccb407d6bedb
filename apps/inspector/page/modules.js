// A pass as nested modules, as their paths say, and the sizes of what they make.
(function(tessera) {
'use strict';

/** "blocks.0.attn.qkv" as ["blocks.0", "attn", "qkv"]: a number belongs to the word before it. */
function segments(path) {
  const found = [];
  for (const word of path.split('.').filter(Boolean))
    if (/^\d+$/.test(word) && found.length)
      found[found.length - 1] += `.${word}`;
    else
      found.push(word);
  return found;
}

/** The paths of a module and of all above it, the outermost first. */
function pathsTo(path) {
  const paths = [];
  for (const segment of segments(path))
    paths.push(paths.length ? `${paths[paths.length - 1]}.${segment}` : segment);
  return paths;
}

const newNode = (path, label, parent) => (
    {path, label, parent, children: [], items: [], steps: [], out: -1, depth: parent ? parent.depth + 1 : 0});

function childOf(node, path, label, nodes) {
  if (nodes.has(path)) return nodes.get(path);
  const child = newNode(path, label, node);
  nodes.set(path, child);
  node.children.push(child);
  node.items.push(child);
  return child;
}

function buildTree(pass) {
  const root = newNode('', 'the whole model', null), nodes = new Map([['', root]]);
  for (const step of pass.steps) {
    const paths = pathsTo(step.module), labels = segments(step.module);
    const chain = [root];
    paths.forEach((path, i) => chain.push(childOf(chain[i], path, labels[i], nodes)));
    for (const node of chain) {
      node.steps.push(step.index);
      node.out = step.output;
    }
    chain[chain.length - 1].items.push(step.index);
  }
  for (const value of pass.values)
    if (value.parameter) addParameter(pass, nodes, value);
  return {root, nodes};
}

// A parameter belongs to the module whose path its name begins with, and to the modules above.
function addParameter(pass, nodes, value) {
  for (const path of ['', ...pathsTo(value.name)]) {
    const node = nodes.get(path);
    if (!node) continue;
    node.parameters = node.parameters || [];
    node.parameters.push(value.index);
  }
}

const trees = new WeakMap();

/**
 * {root, nodes by path}; a node has path, label, items (nodes and numbers of steps, in order), steps, out.
 */
function tree(pass) {
  if (!trees.has(pass)) trees.set(pass, buildTree(pass));
  return trees.get(pass);
}

const node = (pass, path) => tree(pass).nodes.get(path) || tree(pass).root;

const sizes = new WeakMap();

/**
 * RMS of a value or its gradient, computed once; null before the numbers are decoded and where none flowed.
 */
function rms(pass, i, gradient) {
  if (!sizes.has(pass)) sizes.set(pass, new Map());
  const known = sizes.get(pass), key = gradient ? -1 - i : i;
  if (known.has(key)) return known.get(key);
  const numbers = gradient ? pass.gradient(i) : pass.value(i);
  if (numbers === undefined) return null;
  known.set(key, tessera.draw.rms(numbers));
  return known.get(key);
}

/** The name of a value without the path of the module that is shown. */
const shortName = (name, path) => path && name.startsWith(`${path}.`) ? name.slice(path.length + 1) : name;

/** The module of a step, as deep as `path` is: where a view of that depth goes when the step changes. */
function sameDepth(module, path) {
  const paths = pathsTo(module), depth = segments(path).length;
  return paths[Math.min(depth, paths.length) - 1] || '';
}

/** The step to show for a value: the one that made it, else the first that reads it. */
function stepOf(pass, i) {
  const value = pass.values[i];
  return value.step >= 0 ? value.step : value.readers.length ? value.readers[0].step : -1;
}

tessera.modules = {
  segments,
  pathsTo,
  tree,
  node,
  rms,
  shortName,
  sameDepth,
  stepOf
};
})(globalThis.tessera = globalThis.tessera || {});
