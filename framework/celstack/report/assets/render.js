"use strict";

/** Rendering of scenes, as in Decomposer.render (paper, Eq. 2 and 3). */
Object.assign(window.celstack, (() => {
  const { softclip, extent, canvasPoints, paramsOf, clamp } = window.celstack;

  function changePixels(image, chain, table) {
    return chain.reduce((changed, transform) => transform.part.pixels
      ? transform.part.pixels(changed, paramsOf(transform, table)) : changed, image);
  }

  /** Apply the pulls of a chain to points, in place: the last warp first. */
  function pull(points, chain, table) {
    for (const transform of [...chain].reverse()) {
      if (transform.part.pull) {
        transform.part.pull(points, paramsOf(transform, table));
      }
    }
  }

  /** Sample an image bilinearly. Outside it is transparent, or its border is extended. */
  function sample(image, points, extendBorder) {
    const { depth, height, width, data } = image;
    const [reachX, reachY] = extent(height, width);
    const count = points.length / 2;
    const size = height * width;
    const found = new Float32Array(depth * count);
    for (let point = 0; point < count; point++) {
      let x = ((points[2 * point] / reachX + 1) * width - 1) / 2;
      let y = ((points[2 * point + 1] / reachY + 1) * height - 1) / 2;
      if (extendBorder) {
        x = clamp(x, 0, width - 1);
        y = clamp(y, 0, height - 1);
      } else if (!(x > -1 && x < width && y > -1 && y < height)) {
        continue;
      }
      const left = Math.floor(x);
      const top = Math.floor(y);
      for (let row = Math.max(top, 0); row <= Math.min(top + 1, height - 1); row++) {
        const down = 1 - Math.abs(y - row);
        for (let column = Math.max(left, 0); column <= Math.min(left + 1, width - 1); column++) {
          const weight = down * (1 - Math.abs(x - column));
          const from = row * width + column;
          for (let plane = 0; plane < depth; plane++) {
            found[plane * count + point] += weight * data[plane * size + from];
          }
        }
      }
    }
    return found;
  }

  /** Return the range of pixels, counted row by row, that are not transparent. */
  function span(alpha) {
    let begin = 0;
    let end = alpha.length;
    while (begin < end && alpha[begin] === 0) {
      begin++;
    }
    while (end > begin && alpha[end - 1] === 0) {
      end--;
    }
    return { begin, end };
  }

  /** Reduce visibilities by a layer that occludes with this weight. */
  function cover(left, alpha, hides, { begin, end }) {
    for (let pixel = begin; pixel < end; pixel++) {
      left[pixel] *= 1 - hides * alpha[pixel];
    }
  }

  /** Renders scenes of one model, and caches what has not changed since the last time. */
  class Painter {
    constructor(model) {
      this.model = model;
      this.size = model.height * model.width;
      this.points = canvasPoints(model.height, model.width);
      this.cache = new Map();
    }

    /** Return the image, and the alpha and visibility of each layer. */
    render(scene) {
      const { channels } = this.model;
      const layers = scene.layers.map((layer, number) => this.layer(layer, number));
      const alpha = layers.map((values) => values && values.subarray(channels * this.size));
      const visible = alpha.map((values) => values && Float32Array.from(values));
      const there = alpha.flatMap((values, number) =>
        (values ? [{ number, ...span(values) }] : []));
      const image = Float32Array.from(this.backdrop(scene.background));
      const uncovered = new Float32Array(this.size).fill(1);
      for (const back of there) {
        cover(uncovered, alpha[back.number], 1, back);
        for (const front of there) {
          const hides = scene.occlusion[front.number][back.number];
          if (hides > 0) {
            cover(visible[back.number], alpha[front.number], hides, front);
          }
        }
      }
      for (let channel = 0; channel < channels; channel++) {
        const plane = image.subarray(channel * this.size, (channel + 1) * this.size);
        for (let pixel = 0; pixel < this.size; pixel++) {
          plane[pixel] *= uncovered[pixel];
        }
        for (const { number, begin, end } of there) {
          const color = layers[number].subarray(channel * this.size);
          for (let pixel = begin; pixel < end; pixel++) {
            plane[pixel] += visible[number][pixel] * color[pixel];
          }
        }
      }
      return { image, alpha, visible };
    }

    /** Render one layer: color, then alpha; null if it is empty. */
    layer(layer, number) {
      const { sprite, sprite_params, layer_params } = layer;
      if (sprite === null) {
        return null;
      }
      const { chains, channels } = this.model;
      return this.cached(`layer ${number}`, [sprite, sprite_params, layer_params], () => {
        const points = Float64Array.from(this.points);
        pull(points, chains.layer, layer_params);
        pull(points, chains.sprite, sprite_params);
        const found = sample(this.changed(layer, number), points, false);
        for (let at = channels * this.size; at < found.length; at++) {
          found[at] = softclip(found[at]);
        }
        return found;
      });
    }

    /** Return the sprite of a layer before warps. */
    changed({ sprite, sprite_params, layer_params }, number) {
      const { chains, sprites } = this.model;
      const still = (chain, table) =>
        chain.filter(({ part }) => part.pixels).map(({ key }) => table[key]);
      const key = [sprite, still(chains.sprite, sprite_params), still(chains.layer, layer_params)];
      return this.cached(`pixels ${number}`, key, () => changePixels(
        changePixels(sprites[sprite], chains.sprite, sprite_params), chains.layer, layer_params));
    }

    /** Render the background; black if there is none. */
    backdrop(background) {
      const { chains, backgrounds, channels } = this.model;
      return this.cached("backdrop", background, () => {
        if (background === null) {
          return new Float32Array(channels * this.size);
        }
        const { number, params } = background;
        const image = changePixels(backgrounds[number], chains.background, params);
        const points = Float64Array.from(this.points);
        pull(points, chains.background, params);
        return sample(image, points, true).subarray(0, channels * this.size);
      });
    }

    /** Return the rendered background as an opaque image. */
    backdropImage(background) {
      const { channels, height, width } = this.model;
      const data = new Float32Array((channels + 1) * this.size).fill(1);
      data.set(this.backdrop(background));
      return { depth: channels + 1, height, width, data };
    }

    /** Return the cached value of a name, made anew if its inputs have changed. */
    cached(name, inputs, make) {
      const key = JSON.stringify(inputs);
      if (this.cache.get(name)?.key !== key) {
        this.cache.set(name, { key, value: make() });
      }
      return this.cache.get(name).value;
    }
  }

  /** Convert values to 8-bit ImageData; one channel is gray. */
  function toPicture(values, channels, height, width, alpha = null) {
    const picture = new ImageData(width, height);
    const size = height * width;
    for (let pixel = 0; pixel < size; pixel++) {
      for (let channel = 0; channel < 3; channel++) {
        const plane = channels === 1 ? 0 : channel;
        picture.data[4 * pixel + channel] = 255 * values[plane * size + pixel];
      }
      picture.data[4 * pixel + 3] = alpha ? 255 * alpha[pixel] : 255;
    }
    return picture;
  }

  return { Painter, changePixels, toPicture };
})());
