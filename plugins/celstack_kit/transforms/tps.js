({ points: side, spline }) => {
  const count = side * side;
  const places = Array.from({ length: side }, (_, at) => -1 + (2 * at) / (side - 1));

  /** Mix what the controls do into weights of the kernels, of 1, of x and of y. */
  function weights(controls) {
    return Float64Array.from(spline, (row) =>
      row.reduce((sum, value, control) => sum + value * controls[control], 0));
  }

  function pull(points, params) {
    const across = weights(params.slice(0, count));
    const down = weights(params.slice(count));
    for (let at = 0; at < points.length; at += 2) {
      const x = points[at];
      const y = points[at + 1];
      let u = x + across[count] + across[count + 1] * x + across[count + 2] * y;
      let v = y + down[count] + down[count + 1] * x + down[count + 2] * y;
      for (let control = 0; control < count; control++) {
        const right = x - places[control % side];
        const below = y - places[Math.floor(control / side)];
        const squared = right * right + below * below;
        if (squared > 0) {
          const kernel = 0.5 * squared * Math.log(squared);
          u += across[control] * kernel;
          v += down[control] * kernel;
        }
      }
      points[at] = u;
      points[at + 1] = v;
    }
  }

  return {
    pull,

    follow(params, [a, b, c, d, e, f]) {
      // Each control point maps to where its new position mapped; between them it is a new spline.
      const moved = new Float64Array(2 * count);
      for (let control = 0; control < count; control++) {
        const x = places[control % side];
        const y = places[Math.floor(control / side)];
        moved[2 * control] = a * x + b * y + c;
        moved[2 * control + 1] = d * x + e * y + f;
      }
      pull(moved, params);
      const right = params.slice(0, count).map((_, at) => moved[2 * at] - places[at % side]);
      const below = params.slice(0, count).map(
        (_, at) => moved[2 * at + 1] - places[Math.floor(at / side)]);
      return [...right, ...below];
    },
  };
}
