(options, celstack) => ({
  pull(points, params) {
    for (let at = 0; at < points.length; at += 2) {
      const x = points[at];
      const y = points[at + 1];
      const u = x + params[0] * x + params[1] * y + params[2];
      const v = y + params[3] * x + params[4] * y + params[5];
      const z = celstack.offHorizon(1 + params[6] * x + params[7] * y + params[8]);
      points[at] = u / z;
      points[at + 1] = v / z;
    }
  },

  follow(params, through) {
    const [a, b, c, d, e, f] = through;
    return [0, 1, 2].flatMap((row) => {
      const [x, y, z] = [0, 1, 2].map((column) =>
        params[3 * row + column] + (row === column ? 1 : 0));
      const both = [x * a + y * d, x * b + y * e, x * c + y * f + z];
      return both.map((value, column) => value - (row === column ? 1 : 0));
    });
  },
})
