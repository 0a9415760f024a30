"use strict";

/** The model in a page: sprites, backgrounds, chains of transforms, examples. */
Object.assign(window.celstack, (() => {
  /** Decode celstack.report.packed_images: a list of images, each with its planes in one array. */
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

  /** Instantiate the browser code of every transform of a chain. */
  function build(chain, code) {
    return chain.map((transform) => {
      if (!code[transform.code]) {
        throw new Error(`the code of the transform ${transform.name} failed to load`);
      }
      return { ...transform, part: code[transform.code](transform.options, window.celstack) };
    });
  }

  /** Load a model from the data of a page and the browser code of its transforms. */
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

  /** Return the parameters of a transform; zeros, its rest pose, if it is inactive. */
  function paramsOf(transform, table) {
    return transform.active ? table[transform.key] : new Array(transform.count).fill(0);
  }

  /** Return the parameters of a chain in its rest pose. */
  function atRest(chain) {
    return Object.fromEntries(
      chain.map(({ key, count }) => [key, new Array(count).fill(0)]));
  }

  return { load, paramsOf, atRest };
})());
