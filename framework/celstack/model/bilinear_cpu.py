"""Bilinear interpolation of sprites, and its gradients: loops compiled for CPUs.

``index``, ``samples`` and ``spans`` are those of ``celstack.model.sample_positions_cpu``.
``plane`` is one channel of a padded sprite, flattened; ``stride`` is the length of its rows.
"""

from typing import no_type_check

import numpy as np

from celstack.model.numba_jit import compiled
from celstack.model.sample_positions_cpu import COVERAGE, WEIGHT_X, WEIGHT_Y


@compiled
@no_type_check
def copy_into_padded(image, padded):
    """Copy a sprite into the inside of a padded one."""
    depth, height, width = image.shape
    for c in range(depth):
        for y in range(height):
            source, target = image[c, y], padded[c, y + 1, 1 : width + 1]
            for x in range(width):
                target[x] = source[x]


@compiled
@no_type_check
def interpolate(plane, stride, index, samples, spans, found):
    """Sample one channel for all pixels of a window; zero outside the spans."""
    for row in range(len(found)):
        first, last = spans[row]
        mine, target = index[row, first:last], found[row, first:last]
        right, below = samples[WEIGHT_X, row, first:last], samples[WEIGHT_Y, row, first:last]
        for x in range(first):
            found[row, x] = 0
        for x in range(last, found.shape[1]):
            found[row, x] = 0
        for x in range(len(target)):
            i = np.uint32(mine[x])
            j = i + np.uint32(stride)
            upper = plane[i] + right[x] * (plane[i + np.uint32(1)] - plane[i])
            lower = plane[j] + right[x] * (plane[j + np.uint32(1)] - plane[j])
            target[x] = upper + below[x] * (lower - upper)


@compiled
@no_type_check
def position_backward(plane, stride, index, samples, spans, gradient, of_position):
    """Add one channel's part of the gradient of the sampled x and y, in pixels."""
    for row in range(len(gradient)):
        first, last = spans[row]
        mine, coverage = index[row, first:last], samples[COVERAGE, row, first:last]
        right, below = samples[WEIGHT_X, row, first:last], samples[WEIGHT_Y, row, first:last]
        of_x, of_y = of_position[0, row, first:last], of_position[1, row, first:last]
        slope = gradient[row, first:last]
        for x in range(len(slope)):
            i = np.uint32(mine[x])
            j = i + np.uint32(stride)
            upper = plane[i + np.uint32(1)] - plane[i]
            lower = plane[j + np.uint32(1)] - plane[j]
            weight = slope[x] if coverage[x] != 0 else slope.dtype.type(0)
            down = plane[j] - plane[i]
            of_x[x] += weight * (upper + below[x] * (lower - upper))
            of_y[x] += weight * (down + right[x] * (lower - upper))


@compiled
@no_type_check
def pixels_backward(of_planes, stride, index, samples, spans, gradients):
    """Add to the gradient of the padded sprite's pixels, for all channels."""
    for row in range(gradients.shape[1]):
        first, last = spans[row]
        mine = index[row, first:last]
        right, below = samples[WEIGHT_X, row, first:last], samples[WEIGHT_Y, row, first:last]
        for x in range(len(mine)):
            i = np.uint32(mine[x])
            j = i + np.uint32(stride)
            both = right[x] * below[x]
            neither = 1 - right[x] - below[x] + both
            for c in range(len(gradients)):
                slope = gradients[c, row, first + x]
                of_planes[c, i] += slope * neither
                of_planes[c, i + np.uint32(1)] += slope * (right[x] - both)
                of_planes[c, j] += slope * (below[x] - both)
                of_planes[c, j + np.uint32(1)] += slope * both
