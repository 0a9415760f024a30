"use strict";

/** Edits of scenes, in place. A scene is the content of a scene file. */
Object.assign(window.celstack, (() => {
  const { chained, inverse, shift, about, paramsOf, atRest, changePixels, clamp } =
    window.celstack;
  const MAX_PARAMETER = 1e6; // as in celstack.export.scene_json
  const IDENTITY = [1, 0, 0, 0, 1, 0];
  /** Return whether a matrix is nearly the identity. */
  const isIdentity = (matrix) => matrix.every((value, at) => Math.abs(value - IDENTITY[at]) < 1e-6);
  const isValid = (params) =>
    params.every((value) => Number.isFinite(value) && Math.abs(value) <= MAX_PARAMETER);

  /**
   * Move a layer on its canvas by a matrix, and return the rest that its warps cannot express.
   *
   * The last warp takes as much as it can, and leaves the rest to those before it.
   */
  function place(model, layer, matrix) {
    let rest = inverse(matrix);
    const warps = [
      ...model.chains.sprite.map((transform) => [transform, layer.sprite_params]),
      ...model.chains.layer.map((transform) => [transform, layer.layer_params]),
    ].filter(([transform]) => transform.part.pull);
    for (const [transform, table] of warps.reverse()) {
      const { part, key, active } = transform;
      const before = paramsOf(transform, table);
      const followed = active && part.follow ? part.follow([...before], rest) : null;
      const after = followed && isValid(followed) ? followed : before;
      if (after === followed) {
        table[key] = followed;
      }
      if (part.matrix) {
        const wanted = chained(part.matrix(before), rest);
        rest = chained(wanted, inverse(part.matrix(after)));
      } else if (after === followed) {
        rest = IDENTITY;
      }
    }
    return rest;
  }

  /** Return which edits a model supports, and the reasons for those that it does not. */
  function abilities(model) {
    const can = (matrix) => isIdentity(place(model, {
      sprite_params: atRest(model.chains.sprite), layer_params: atRest(model.chains.layer),
    }, matrix));
    const center = { x: 0, y: 0 };
    const found = {
      move: can(shift(0.1, 0.05)),
      scale: can(about(center, 0.9, 0)),
      turn: can(about(center, 1, 0.1)),
      recolor: Boolean(recolorTransform(model.chains.sprite) || recolorTransform(model.chains.layer)),
      backdrop: Boolean(recolorTransform(model.chains.background)),
    };
    const { sprite, layer, background } = model.chains;
    const reason = (what, cannot, chain) => {
      const used = [...new Set(chain.map(({ name }) => name))];
      return `${what} of this model cannot be ${cannot} (transforms: ${used.join(", ") || "none"}).`;
    };
    const objects = (cannot) => reason("Objects", cannot, [...sprite, ...layer]);
    return {
      ...found,
      reasons: {
        move: objects("moved"),
        scale: objects("resized"),
        turn: objects("rotated"),
        recolor: objects("recolored"),
        backdrop: reason("Backgrounds", "recolored", background),
      },
    };
  }

  const recolorTransform = (chain) => chain.find(({ active, part }) => active && part.recolour);

  /** Set the parameters that give an image, after these chains, another mean color. */
  function repaint(image, chains, to) {
    let current = image;
    for (const [chain, table] of chains) {
      const transform = recolorTransform(chain);
      if (transform) {
        current = changePixels(current, chain.slice(0, chain.indexOf(transform)), table);
        const params = transform.part.recolour(meanColor(current), to);
        if (isValid(params)) {
          table[transform.key] = params;
        }
        return;
      }
      current = changePixels(current, chain, table);
    }
  }

  function recolor(model, layer, to) {
    repaint(model.sprites[layer.sprite], [
      [model.chains.sprite, layer.sprite_params], [model.chains.layer, layer.layer_params],
    ], to);
  }

  function recolorBackdrop(model, background, to) {
    const chains = [[model.chains.background, background.params]];
    repaint(model.backgrounds[background.number], chains, to);
  }

  /** Return the mean color of an image, weighted by alpha. */
  function meanColor({ depth, height, width, data }) {
    const size = height * width;
    const sums = new Array(depth - 1).fill(0);
    let total = 1e-6;
    for (let pixel = 0; pixel < size; pixel++) {
      const alpha = clamp(data[(depth - 1) * size + pixel], 0, 1);
      total += alpha;
      for (let channel = 0; channel < depth - 1; channel++) {
        sums[channel] += alpha * data[channel * size + pixel];
      }
    }
    return sums.map((sum) => clamp(sum / total, 0, 1));
  }

  /** Put one layer in front of another. */
  function hide(scene, front, back) {
    scene.occlusion[front][back] = 1;
    scene.occlusion[back][front] = 0;
  }

  /** Put a layer in front of all others, or behind them. */
  function toEnd(scene, layer, front) {
    scene.layers.forEach((_, other) => {
      if (other !== layer) {
        hide(scene, front ? layer : other, front ? other : layer);
      }
    });
  }

  /** Sort layers from front to back, by how many others they occlude. */
  function frontToBack(scene, layers) {
    const hides = (layer) =>
      layers.reduce((sum, other) => sum + scene.occlusion[layer][other], 0);
    return [...layers].sort((one, other) => hides(other) - hides(one) || other - one);
  }

  /** Return the next layer in front of this one, or behind it; undefined if there is none. */
  function nextTo(scene, layer, layers, forward) {
    const beyond = frontToBack(scene, layers).filter((other) => other !== layer
      && (forward ? scene.occlusion[other][layer] : scene.occlusion[layer][other]) > 0.5);
    return forward ? beyond.at(-1) : beyond[0];
  }

  return {
    isIdentity, place, abilities, recolor, recolorBackdrop, meanColor, hide, toEnd,
    frontToBack, nextTo,
  };
})());
