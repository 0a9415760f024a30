"use strict";

/** A model as a page holds it: sprites, backgrounds, chains of transforms, examples. */
Object.assign(window.celstack, (() => {
  /** Undo celstack.report.packed_images: a list of images, each with its planes in one array. */
  async function unpack({ shape, low, step, data }) {
    const [count, depth, height, width] = shape;
    const bytes = await inflate(Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)));
    const size = height * width;
    const half = count * depth * size;
    return Array.from({ length: count }, (_, image) => {
      const values = new Float32Array(depth * size);
      for (let at = 0, level = 0; at < values.length; at++) {
        const from = image * depth * size + at;
        const change = (bytes[from] << 8) | bytes[half + from];
        level = at % width === 0 ? change : (level + change) & 0xffff;
        const plane = image * depth + Math.floor(at / size);
        values[at] = low[plane] + level * step[plane];
      }
      return { depth, height, width, data: values };
    });
  }

  async function inflate(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  /** Give every transform of a chain its code. */
  function build(chain, code) {
    return chain.map((transform) => {
      if (!code[transform.code]) {
        throw new Error(`the code of the transform ${transform.name} does not run here`);
      }
      return { ...transform, part: code[transform.code](transform.options, window.celstack) };
    });
  }

  /** Make a model of the data in a page and the functions that its transforms brought. */
  async function load(data, code) {
    const chains = {};
    for (const [kind, chain] of Object.entries(data.chains)) {
      chains[kind] = build(chain, code);
    }
    return {
      ...data,
      chains,
      sprites: await unpack(data.sprites),
      backgrounds: data.backgrounds ? await unpack(data.backgrounds) : [],
    };
  }

  /** Return the parameters of a transform, or those of its rest pose while it does not work. */
  function paramsOf(transform, table) {
    return transform.active ? table[transform.key] : new Array(transform.count).fill(0);
  }

  /** Return the parameters of the rest pose of a whole chain. */
  function atRest(chain) {
    return Object.fromEntries(
      chain.map(({ key, count }) => [key, new Array(count).fill(0)]));
  }

  return { load, paramsOf, atRest };
})());
