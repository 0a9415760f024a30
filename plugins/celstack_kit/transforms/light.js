(options, celstack) => {
  const cells = options.cells;

  // The two grid points around a pixel, and the weight of the second one.
  const between = (index, length) => {
    const at = length > 1 ? index * (cells - 1) / (length - 1) : 0;
    const first = Math.min(Math.floor(at), cells - 2);
    return [first, at - first];
  };

  return {
    pixels(image, params) {
      const { height, width } = image;
      const size = height * width;
      const data = Float32Array.from(image.data);
      for (let row = 0; row < height; row++) {
        const [above, down] = between(row, height);
        for (let column = 0; column < width; column++) {
          const [left, across] = between(column, width);
          const grid = (y, x) => params[(above + y) * cells + left + x];
          const top = grid(0, 0) * (1 - across) + grid(0, 1) * across;
          const bottom = grid(1, 0) * (1 - across) + grid(1, 1) * across;
          const gain = celstack.softexp(top * (1 - down) + bottom * down);
          for (let channel = 0; channel < image.depth - 1; channel++) {
            const at = channel * size + row * width + column;
            data[at] = celstack.softclip(data[at] * gain);
          }
        }
      }
      return { ...image, data };
    },
  };
}
