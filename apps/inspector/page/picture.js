// The picture, its patches, and the gradient of the loss with respect to each pixel.
(function (tessera) {
  'use strict';

  const draw = tessera.draw = tessera.draw || {};

  const canvases = new WeakMap();

  /** A canvas that holds {width, height, rgba}, made once. */
  draw.pictureCanvas = function (picture) {
    if (canvases.has(picture)) return canvases.get(picture);
    const canvas = document.createElement('canvas');
    canvas.width = picture.width;
    canvas.height = picture.height;
    const image = canvas.getContext('2d').createImageData(picture.width, picture.height);
    image.data.set(picture.rgba);
    canvas.getContext('2d').putImageData(image, 0, 0);
    canvases.set(picture, canvas);
    return canvas;
  };

  const greys = new WeakMap();

  /** The picture in faint grey, to lie beneath colours that mean numbers. */
  draw.greyPicture = function (picture) {
    if (greys.has(picture)) return greys.get(picture);
    const rgba = new Uint8ClampedArray(picture.rgba.length);
    for (let i = 0; i < rgba.length; i += 4) {
      const [red, green, blue] = picture.rgba.subarray(i, i + 3);
      rgba[i] = rgba[i + 1] = rgba[i + 2] = 40 + 0.68 * (0.299 * red + 0.587 * green + 0.114 * blue);
      rgba[i + 3] = 255;
    }
    const grey = {width: picture.width, height: picture.height, rgba};
    greys.set(picture, grey);
    return grey;
  };

  /** Planes of numbers as a picture: the range of all of them becomes black to white. [C, H, W], C 1 or 3. */
  draw.planesAsPicture = function (values, offset, channels, height, width) {
    const pixels = height * width, used = channels >= 3 ? 3 : 1;
    let low = Infinity, high = -Infinity;
    for (let i = offset; i < offset + used * pixels; ++i) {
      if (!Number.isFinite(values[i])) continue;
      low = Math.min(low, values[i]);
      high = Math.max(high, values[i]);
    }
    const rgba = new Uint8ClampedArray(4 * pixels), span = high > low ? high - low : 1;
    for (let i = 0; i < pixels; ++i) {
      for (let c = 0; c < 3; ++c)
        rgba[4 * i + c] = 255 * (values[offset + (used === 3 ? c : 0) * pixels + i] - low) / span;
      rgba[4 * i + 3] = 255;
    }
    return {width, height, rgba, low, high};
  };

  const made = new WeakMap();

  /** What the model saw as a picture, with a note where it is no photograph; null for a graph without images. */
  draw.pictureOf = function (pass, image = 0) {
    const i = pass.index('input'), shape = i >= 0 ? pass.values[i].shape : [];
    if (pass.picture && (image === 0 || shape.length !== 4)) return pass.picture;
    if (shape.length !== 4 || image >= shape[0]) return null;
    if (!made.has(pass)) made.set(pass, []);
    const pictures = made.get(pass), [, channels, height, width] = shape;
    if (!pictures[image]) {
      const picture = draw.planesAsPicture(pass.value(i), image * channels * height * width, channels, height, width);
      picture.note = 'The input itself is drawn, its numbers from ' +
        `${draw.short(picture.low)} to ${draw.short(picture.high)} as dark to light.`;
      pictures[image] = picture;
    }
    return pictures[image];
  };

  /** The sum over channels of |x|: [C, H, W] -> [H, W] */
  draw.sumOfSizes = function (values, offset, channels, pixels) {
    const sum = new Float64Array(pixels);
    for (let c = 0; c < channels; ++c)
      for (let i = 0; i < pixels; ++i) sum[i] += Math.abs(values[offset + c * pixels + i]);
    return sum;
  };

  /** The picture with the lines between its patches. */
  draw.patchedPicture = function (picture, grid, width = 256) {
    const canvas = draw.element('canvas', {class: 'draw-picture', role: 'img',
      'aria-label': grid ? `the picture in ${grid} by ${grid} patches` : 'the picture'});
    draw.keepPainted(canvas, () => {
      const ratio = globalThis.devicePixelRatio || 1, context = canvas.getContext('2d');
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(width * ratio * picture.height / picture.width);
      canvas.style.width = `${width}px`;
      context.imageSmoothingEnabled = false;
      context.drawImage(draw.pictureCanvas(picture), 0, 0, canvas.width, canvas.height);
      context.fillStyle = 'rgba(255, 255, 255, 0.45)';
      for (let k = 1; grid && k < grid; ++k) {
        context.fillRect(Math.round(k * canvas.width / grid), 0, 1, canvas.height);
        context.fillRect(0, Math.round(k * canvas.height / grid), canvas.width, 1);
      }
    });
    return canvas;
  };

  /** A drawing with its title above and its legend below. */
  draw.figure = (title, drawing, legend = null, note = '') => draw.element('figure', {class: 'draw-figure'}, [
    draw.element('figcaption', {text: title}), drawing, legend,
    note ? draw.element('p', {class: 'draw-note', text: note}) : null]);

  // The picture, each pixel as bright as its gradient is large on the scale.
  function litPicture(picture, sum, scale) {
    if (sum.length !== picture.width * picture.height) return picture;
    const rgba = Uint8ClampedArray.from(picture.rgba, (byte, i) => i % 4 === 3 ? byte
      : byte * Math.sqrt(scale.height(sum[i >> 2])));
    return {width: picture.width, height: picture.height, rgba};
  }

  const channelNames = (count) => count === 3 ? ['red', 'green', 'blue']
    : Array.from({length: count}, (_, c) => `channel ${c}`);

  // One plane of the input's gradient; a click leads to the pixel's cell.
  function plane(pass, input, values, {offset, title, scale, size, open}) {
    const [, , height, width] = pass.values[input].shape;
    const map = draw.heatmap({rows: height, cols: width, values, scale, dtype: pass.values[input].dtype, label: title,
      at: (r, c) => offset + r * width + c, cell: Math.max(1, Math.floor(size / width)), name: title,
      rowName: (r) => `pixel row ${r}`, colName: (c) => `column ${c}`,
      pick: open ? (cell) => open(cell) : null});
    return draw.figure(title, map.element);
  }

  /**
   * The picture, dL/dinput of each channel on one scale, and its size summed over the channels. go(place) opens a
   * cell; peers are passes that share the scale.
   */
  draw.inputPanel = function (pass, {go = null, image = 0, peers = [pass], size = 208} = {}) {
    const input = pass.index('input'), picture = draw.pictureOf(pass, image);
    if (input < 0 || !picture || pass.values[input].shape.length !== 4) return null;
    const [, channels, height, width] = pass.values[input].shape, pixels = height * width;
    const layout = draw.layout(pass, pass.config && pass.config.arch === 'segment' ? 'backbone' : '');
    const figures = [draw.figure('picture', draw.patchedPicture(picture, layout && layout.grid, size), null,
      picture.note || '')], planes = [];
    const gradient = pass.gradient(input), gradients = peers.map((p) => p.gradient(p.index('input')));
    if (gradient) {
      const first = image * channels * pixels, sum = draw.sumOfSizes(gradient, first, channels, pixels);
      const sums = gradients.map((g) => g && draw.sumOfSizes(g, first, channels, pixels));
      const sequential = draw.scale({kind: 'sequential', backward: true, limit: draw.limitOf(...sums),
        unit: 'sum over the channels of |dL/dinput|'});
      const scale = draw.scale({limit: draw.limitOf(...gradients), unit: 'dL/dinput'});
      figures.push(draw.figure('picture, lit by |dL/dinput|', draw.patchedPicture(litPicture(picture, sum, sequential),
        0, size), null, 'Black where the loss does not feel the pixel.'));
      const total = plane(pass, input, sum, {offset: 0, title: 'sum of |dL/dinput|',
        scale: sequential, size});
      total.append(draw.legend(sequential, draw.countSpecial(sum)));
      figures.push(total);
      for (let c = 0; c < Math.min(channels, 8); ++c)
        planes.push(plane(pass, input, gradient, {offset: first + c * pixels,
          title: `dL/dinput, ${channelNames(channels)[c]}`, scale, size,
          open: go ? (cell) => go({value: input, gradient: true, cell}) : null}));
      planes.push(draw.legend(scale, draw.countSpecial(gradient), 'the same for all channels'));
    } else {
      figures.push(draw.noGradient(pass, input));
    }
    return draw.element('section', {class: 'draw-input'}, [draw.element('div', {class: 'draw-row'}, figures),
      draw.element('div', {class: 'draw-row'}, planes)]);
  };
})(globalThis.tessera = globalThis.tessera || {});
