"use strict";

/** Edits of scenes. They change the scene they are given, which is the table of a scene file. */
Object.assign(window.celstack, (() => {
  const { chained, inverse, shift, about, paramsOf, atRest, changePixels, clamp } =
    window.celstack;
  const LARGEST = 1e6; // as in celstack.export.scene_json
  const STILL = [1, 0, 0, 0, 1, 0];
  /** Tell whether a matrix moves nothing. */
  const near = (matrix) => matrix.every((value, at) => Math.abs(value - STILL[at]) < 1e-6);
  const sound = (params) =>
    params.every((value) => Number.isFinite(value) && Math.abs(value) <= LARGEST);

  /**
   * Move a layer on its canvas by a matrix, and return what its warps could not follow.
   *
   * The last warp is the first to look: what it cannot do is left to those before it.
   */
  function place(model, layer, matrix) {
    let left = inverse(matrix);
    const warps = [
      ...model.chains.sprite.map((transform) => [transform, layer.sprite_params]),
      ...model.chains.layer.map((transform) => [transform, layer.layer_params]),
    ].filter(([transform]) => transform.part.pull);
    for (const [transform, table] of warps.reverse()) {
      const { part, key, active } = transform;
      const before = paramsOf(transform, table);
      const followed = active && part.follow ? part.follow([...before], left) : null;
      const after = followed && sound(followed) ? followed : before;
      if (after === followed) {
        table[key] = followed;
      }
      if (part.matrix) {
        const wanted = chained(part.matrix(before), left);
        left = chained(wanted, inverse(part.matrix(after)));
      } else if (after === followed) {
        left = STILL;
      }
    }
    return left;
  }

  /** Find out what can be done to the objects of a model, and why not what cannot. */
  function abilities(model) {
    const can = (matrix) => near(place(model, {
      sprite_params: atRest(model.chains.sprite), layer_params: atRest(model.chains.layer),
    }, matrix));
    const centre = { x: 0, y: 0 };
    const found = {
      move: can(shift(0.1, 0.05)),
      scale: can(about(centre, 0.9, 0)),
      turn: can(about(centre, 1, 0.1)),
      recolour: Boolean(painter(model.chains.sprite) || painter(model.chains.layer)),
      backdrop: Boolean(painter(model.chains.background)),
    };
    const { sprite, layer, background } = model.chains;
    const why = (what, cannot, chain) => {
      const used = [...new Set(chain.map(({ name }) => name))];
      return `${what} of this model cannot be ${cannot} (transforms: ${used.join(", ") || "none"}).`;
    };
    const objects = (cannot) => why("Objects", cannot, [...sprite, ...layer]);
    return {
      ...found,
      why: {
        move: objects("moved"),
        scale: objects("resized"),
        turn: objects("turned"),
        recolour: objects("recoloured"),
        backdrop: why("Backgrounds", "recoloured", background),
      },
    };
  }

  const painter = (chain) => chain.find(({ active, part }) => active && part.recolour);

  /** Give an image that passes these chains another colour on the whole. */
  function repaint(image, chains, to) {
    let arrived = image;
    for (const [chain, table] of chains) {
      const transform = painter(chain);
      if (transform) {
        arrived = changePixels(arrived, chain.slice(0, chain.indexOf(transform)), table);
        const params = transform.part.recolour(meanColour(arrived), to);
        if (sound(params)) {
          table[transform.key] = params;
        }
        return;
      }
      arrived = changePixels(arrived, chain, table);
    }
  }

  function recolour(model, layer, to) {
    repaint(model.sprites[layer.sprite], [
      [model.chains.sprite, layer.sprite_params], [model.chains.layer, layer.layer_params],
    ], to);
  }

  function recolourBackdrop(model, background, to) {
    const chains = [[model.chains.background, background.params]];
    repaint(model.backgrounds[background.number], chains, to);
  }

  /** Return the colour of an image on the whole, where it is opaque. */
  function meanColour({ depth, height, width, data }) {
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

  /** Let one layer hide another. */
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

  /** Sort layers: the one that hides most of the others comes first. */
  function frontToBack(scene, layers) {
    const hides = (layer) =>
      layers.reduce((sum, other) => sum + scene.occlusion[layer][other], 0);
    return [...layers].sort((one, other) => hides(other) - hides(one) || other - one);
  }

  /** Return the next layer that hides this one, or is hidden by it; undefined if none does. */
  function nextTo(scene, layer, layers, forward) {
    const beyond = frontToBack(scene, layers).filter((other) => other !== layer
      && (forward ? scene.occlusion[other][layer] : scene.occlusion[layer][other]) > 0.5);
    return forward ? beyond.at(-1) : beyond[0];
  }

  return {
    near, place, abilities, recolour, recolourBackdrop, meanColour, hide, toEnd,
    frontToBack, nextTo,
  };
})());
