(options, celstack) => ({
  pull(points, [a, b, c, d, e, f]) {
    for (let at = 0; at < points.length; at += 2) {
      const x = points[at];
      const y = points[at + 1];
      points[at] = x + a * x + b * y + c;
      points[at + 1] = y + d * x + e * y + f;
    }
  },

  follow([a, b, c, d, e, f], through) {
    const both = celstack.chained([1 + a, b, c, d, 1 + e, f], through);
    return [both[0] - 1, both[1], both[2], both[3], both[4] - 1, both[5]];
  },
})
