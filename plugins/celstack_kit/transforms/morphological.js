({ size }) => {
  const REST = 5;
  const count = size * size;
  const border = (size - 1) / 2;
  const rest = Array.from({ length: count }, (_, at) => (at === (count - 1) / 2 ? REST : -REST));
  // As logarithms, so that no parameter is too large.
  const logSigmoid = (value) => Math.min(value, 0) - Math.log1p(Math.exp(-Math.abs(value)));
  const total = rest.reduce((sum, value) => sum + Math.exp(logSigmoid(value)), 0);
  const blur = rest.map((value) => Math.exp(logSigmoid(value)) / total);

  return {
    pixels(image, params) {
      const { depth, height, width } = image;
      const alpha = params[0];
      const kernel = rest.map((value, at) => logSigmoid(params[1 + at] + value));
      const near = Math.exp(-params.reduce((sum, value) => sum + value * value, 0));
      const data = new Float32Array(image.data.length);
      const seen = new Float64Array(count);
      for (let plane = 0; plane < depth; plane++) {
        for (let y = 0; y < height; y++) {
          for (let x = 0; x < width; x++) {
            let most = -Infinity;
            for (let at = 0; at < count; at++) {
              const row = y + Math.floor(at / size) - border;
              const column = x + (at % size) - border;
              const inside = Math.min(Math.max(row, 0), height - 1) * width
                + Math.min(Math.max(column, 0), width - 1);
              seen[at] = image.data[plane * height * width + inside];
              most = Math.max(most, alpha * seen[at] + kernel[at]);
            }
            let shares = 0;
            let mean = 0;
            let blurred = 0;
            for (let at = 0; at < count; at++) {
              const share = Math.exp(alpha * seen[at] + kernel[at] - most);
              shares += share;
              mean += share * seen[at];
              blurred += blur[at] * seen[at];
            }
            const here = plane * height * width + y * width + x;
            data[here] = mean / shares + near * (image.data[here] - blurred);
          }
        }
      }
      return { ...image, data };
    },
  };
}
