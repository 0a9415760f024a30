"""Where the pixels of a window sample a sprite: loops compiled for CPUs.

Sprites are padded with transparent pixels, one before and two after each row and column, so
that samples just outside a sprite need no special case.

Convention:
    For each pixel of a window, ``index`` is the padded sprite's upper left pixel among the
    four that are interpolated, and ``samples`` holds what the constants below name.
    ``spans[row]`` is the first column that samples anything of the sprite, and the one after
    the last. Only these columns have to be interpolated.
"""

from typing import no_type_check

import numpy as np

from celstack.geometry.homography import MIN_DEPTH
from celstack.model.numba_jit import compiled

U = 0
"""The sampled x, in the units of ``grid_sample``: the sprite runs over [-1, 1]."""
V = 1
"""The sampled y, in the same units."""
INVERSE_DEPTH = 2
"""One divided by the depth of a homography; 1 for all other maps."""
WEIGHT_X = 3
"""The weight of the right pixels among the four; the left ones have one minus that."""
WEIGHT_Y = 4
"""The weight of the lower pixels among the four."""
COVERAGE = 5
"""How much of the sample lies in the sprite: a channel of ones, interpolated."""
QUANTITIES = 6
LANES = 16
"""Rows are padded to a multiple of this many pixels, so that loops are vectorized fully."""


@compiled
@no_type_check
def allocate(tall, wide, dtype):
    """Return arrays for the indices, samples and spans of a window."""
    padded = -(-wide // LANES) * LANES
    index = np.zeros((tall, padded), np.int32)
    samples = np.zeros((QUANTITIES, tall, padded), dtype)
    return index, samples, np.zeros((tall, 2), np.int64)


@compiled
@no_type_check
def map_pixels(mapping, xs, ys, samples):
    """Compute U, V and INVERSE_DEPTH from a matrix, or copy points that are given."""
    for row in range(len(ys)):
        u, v, inverse = samples[U, row], samples[V, row], samples[INVERSE_DEPTH, row]
        if mapping.ndim == 3:
            for x in range(len(xs)):
                u[x] = mapping[row, x, 0]
                v[x] = mapping[row, x, 1]
                inverse[x] = 1
        else:
            for x in range(len(xs)):
                u[x] = mapping[0, 0] * xs[x] + (mapping[0, 1] * ys[row] + mapping[0, 2])
                v[x] = mapping[1, 0] * xs[x] + (mapping[1, 1] * ys[row] + mapping[1, 2])
                inverse[x] = 1
            if len(mapping) == 3:
                _divide_by_depth(mapping[2], xs, ys[row], u, v, inverse)


@compiled
@no_type_check
def _divide_by_depth(coefficients, xs, y, u, v, inverse):
    """Divide by the depth, clamped as by ``clamp_depth``."""
    one, least = xs.dtype.type(1), xs.dtype.type(MIN_DEPTH)
    for x in range(len(xs)):
        depth = coefficients[0] * xs[x] + (coefficients[1] * y + coefficients[2])
        distance = least if abs(depth) < least else abs(depth)
        inverse[x] = one / (-distance if depth < 0 else distance)
        u[x] *= inverse[x]
        v[x] *= inverse[x]


@compiled
@no_type_check
def locate(size, index, samples, wide, spans):
    """Compute indices, weights, COVERAGE and spans from U and V; NaN is preserved."""
    number = samples.dtype.type
    zero, half, one = number(0), number(0.5), number(1)
    height, width, stride = number(size[0]), number(size[1]), np.int32(size[1] + 3)
    for row in range(len(index)):
        u, v, right = samples[U, row], samples[V, row], samples[WEIGHT_X, row]
        below, coverage, mine = samples[WEIGHT_Y, row], samples[COVERAGE, row], index[row]
        for x in range(len(mine)):
            a = (u[x] + one) * (half * width) + half
            b = (v[x] + one) * (half * height) + half
            unknown = (a - a) + (b - b)  # zero, or NaN
            a = a if a > zero else zero
            b = b if b > zero else zero
            a = a if a < width + one else width + one
            b = b if b < height + one else height + one
            i, j = np.int32(a), np.int32(b)
            mine[x] = j * stride + i
            right[x] = a - number(i) + unknown
            below[x] = b - number(j)
            a, b = min(a, width + one - a), min(b, height + one - b)
            coverage[x] = min(a, one) * min(b, one) + unknown
        first, last = 0, wide
        while first < last and coverage[first] == 0:
            first += 1
        while first < last and coverage[last - 1] == 0:
            last -= 1
        spans[row, 0], spans[row, 1] = first, last


@compiled
@no_type_check
def map_pixels_backward(of_mapping, xs, ys, samples, spans, size, of_position):
    """Add to the gradient of a matrix or of points.

    ``of_position`` is the gradient of the sampled x and y, in pixels of the sprite. It is
    overwritten.
    """
    number = xs.dtype.type
    largest = number(1) / number(MIN_DEPTH)
    for row in range(len(ys)):
        first, last = spans[row]
        inverse, columns = samples[INVERSE_DEPTH, row, first:last], xs[first:last]
        of_u, of_v = of_position[0, row, first:last], of_position[1, row, first:last]
        for x in range(len(inverse)):
            of_u[x] *= number(size[1]) / 2 * inverse[x]
            of_v[x] *= number(size[0]) / 2 * inverse[x]
        if of_mapping.ndim == 3:
            for x in range(len(inverse)):
                of_mapping[row, first + x, 0] += of_u[x]
                of_mapping[row, first + x, 1] += of_v[x]
        else:
            _add_row(of_mapping[0], of_u, columns, ys[row])
            _add_row(of_mapping[1], of_v, columns, ys[row])
            if len(of_mapping) == 3:
                u, v = samples[U, row, first:last], samples[V, row, first:last]
                for x in range(len(inverse)):
                    of_u[x] = -(of_u[x] * u[x] + of_v[x] * v[x])
                    # A depth that is clamped has no gradient.
                    of_u[x] = of_u[x] if abs(inverse[x]) < largest else number(0)
                _add_row(of_mapping[2], of_u, columns, ys[row])


@compiled
@no_type_check
def _add_row(of_coefficients, gradient, xs, y):
    """Add to the gradient of a matrix's row, which is multiplied by (x, y, 1)."""
    total, weighted = xs.dtype.type(0), xs.dtype.type(0)
    for x in range(len(xs)):
        total += gradient[x]
        weighted += gradient[x] * xs[x]
    of_coefficients[0] += weighted
    of_coefficients[1] += total * y
    of_coefficients[2] += total
