(options, celstack) => {
  function matrix([logScale, angle, right, down]) {
    const shrink = celstack.softexp(-logScale);
    const cos = shrink * Math.cos(angle);
    const sin = shrink * Math.sin(angle);
    return [cos, sin, -cos * right - sin * down, -sin, cos, sin * right - cos * down];
  }

  return {
    matrix,

    pull(points, params) {
      const [a, b, c, d, e, f] = matrix(params);
      for (let at = 0; at < points.length; at += 2) {
        const x = points[at];
        const y = points[at + 1];
        points[at] = a * x + b * y + c;
        points[at + 1] = d * x + e * y + f;
      }
    },

    follow(params, through) {
      const [a, b, c, d, e, f] = celstack.chained(matrix(params), through);
      const determinant = a * e - b * d;
      return [
        -0.5 * Math.log(Math.abs(determinant)),
        Math.atan2(b - d, a + e),
        (b * f - e * c) / determinant,
        (d * c - a * f) / determinant,
      ];
    },
  };
}
