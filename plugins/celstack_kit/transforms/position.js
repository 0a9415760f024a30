(options, celstack) => {
  // Keeps the logarithm finite where a sprite covers the whole canvas.
  const MIN_SHRINK = 1e-9;

  function matrix(params) {
    const shrink = 1 + celstack.softexp(params[0]);
    return [shrink, 0, params[1], 0, shrink, params[2]];
  }

  return {
    matrix,

    pull(points, params) {
      const shrink = 1 + celstack.softexp(params[0]);
      for (let at = 0; at < points.length; at += 2) {
        points[at] = points[at] * shrink + params[1];
        points[at + 1] = points[at + 1] * shrink + params[2];
      }
    },

    follow(params, through) {
      const [a, b, c, d, e, f] = celstack.chained(matrix(params), through);
      const determinant = a * e - b * d;
      const shrink = Math.max(1, Math.sqrt(Math.abs(determinant)));
      // The canvas point that maps to the sprite's center is kept.
      const x = (b * f - e * c) / determinant;
      const y = (d * c - a * f) / determinant;
      return [Math.log(Math.max(shrink - 1, MIN_SHRINK)), -shrink * x, -shrink * y];
    },
  };
}
