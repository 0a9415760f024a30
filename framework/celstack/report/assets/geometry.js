"use strict";

/** Points, matrices and soft bounds, with the conventions of celstack.geometry. */
window.celstack = window.celstack || {};

Object.assign(window.celstack, (() => {
  const SLOPE = 0.01;
  const BOUND = 8;
  const MIN_DEPTH = 1e-3;

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  /** Clip to [0, 1], with a small slope outside. */
  const softclip = (value) => value + (1 - SLOPE) * (clamp(value, 0, 1) - value);

  /** Return e^x, continued along its tangent beyond 8. */
  function softexp(value) {
    const bounded = Math.min(value, BOUND);
    return Math.exp(bounded) * (1 + value - bounded);
  }

  /** Bound the absolute value of a depth from below, keeping its sign. */
  const offHorizon = (depth) =>
    depth < 0 ? Math.min(depth, -MIN_DEPTH) : Math.max(depth, MIN_DEPTH);

  /** Return the product of two matrices: the second is applied to points first. */
  function chained([a, b, c, d, e, f], [p, q, r, s, t, u]) {
    return [
      a * p + b * s, a * q + b * t, a * r + b * u + c,
      d * p + e * s, d * q + e * t, d * r + e * u + f,
    ];
  }

  function inverse([a, b, c, d, e, f]) {
    const det = a * e - b * d;
    return [
      e / det, -b / det, (b * f - e * c) / det,
      -d / det, a / det, (d * c - a * f) / det,
    ];
  }

  const shift = (right, down) => [1, 0, right, 0, 1, down];

  /** Scale and rotate about a point; angles are clockwise on screen, in radians. */
  function about({ x, y }, scale, angle) {
    const cos = scale * Math.cos(angle);
    const sin = scale * Math.sin(angle);
    return [cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y];
  }

  /** Return the largest x and y on a canvas of this size. */
  function extent(height, width) {
    const longer = Math.max(height, width);
    return [width / longer, height / longer];
  }

  /** Return the pixel centers of a canvas, row by row, as x and y of each. */
  function canvasPoints(height, width) {
    const [reachX, reachY] = extent(height, width);
    const points = new Float64Array(2 * height * width);
    for (let row = 0, at = 0; row < height; row++) {
      for (let column = 0; column < width; column++) {
        points[at++] = ((column + 0.5) * (2 / width) - 1) * reachX;
        points[at++] = ((row + 0.5) * (2 / height) - 1) * reachY;
      }
    }
    return points;
  }

  return {
    clamp, softclip, softexp, offHorizon, chained, inverse, shift, about, extent, canvasPoints,
  };
})());
