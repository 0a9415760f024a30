"""Algorithm 1 compiled for CPUs: loops over layers, sprites and pixels.

As in ``celstack.model.layer_stack``, a layer of mask m and color c makes the image
The + m (E c - D): The is the composite of the others, E the layer's transmittance through those
in front, D what the layer would occlude.
"""

from math import nan
from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack import EMPTY, Candidates
from celstack.model.numba_jit import array, check_shape, compiled, parallel_for, window_corners


def choose(
    images: Float[Tensor, "B C H W"],
    candidates: list[Candidates],
    backdrops: Float[Tensor, "B M C H W"],
    occlusion: Float[Tensor, "B L L"],
    price: float | None,
    sweeps: int,
) -> tuple[Int[Tensor, "B L"], Int[Tensor, " B"]]:
    """Return the sprite of every layer, and the background, after at most ``sweeps`` sweeps.

    An image that a sweep does not change has converged and is not swept again.
    """
    batch, layers = len(images), len(candidates)
    sprite, background = np.full((batch, layers), EMPTY), np.zeros(batch, np.int64)
    places = _check(images, candidates, backdrops, occlusion)
    # The backdrop is treated as a first layer that all others occlude.
    hides = torch.cat([occlusion.new_ones(batch, layers, 1), occlusion], dim=2)
    given = [array(values) for values in (images, backdrops, hides, places)]
    paints = [array(mine.paint) for mine in candidates]
    alphas = [array(mine.alpha) for mine in candidates]
    # Comparisons with NaN are false: then no layer is left empty.
    least = nan if price is None else float(price) * images[0].numel()

    def explain(some: slice) -> None:
        shown = (tuple(one[some] for one in each) for each in (paints, alphas))
        found = sprite[some], background[some]
        _explain(*(one[some] for one in given), *shown, least, sweeps, *found)

    parallel_for(explain, batch)
    return torch.from_numpy(sprite), torch.from_numpy(background)


def _check(
    images: Tensor, candidates: list[Candidates], backdrops: Tensor, occlusion: Tensor
) -> Int[Tensor, "B L 2"]:
    """Check shapes; return the top left corners of all layers' windows."""
    batch, channels, height, width = images.shape
    layers, count = len(candidates), candidates[0].alpha.shape[1]
    check_shape("backdrops", backdrops, batch, backdrops.shape[1], channels, height, width)
    check_shape("occlusion", occlusion, batch, layers, layers)
    sizes = []
    for mine in candidates:
        tall, wide = mine.alpha.shape[2:]
        check_shape("masks", mine.alpha, batch, count, tall, wide)
        check_shape("candidates", mine.paint, batch, count, channels, tall, wide)
        sizes.append((tall, wide))
    return window_corners([mine.windows for mine in candidates], batch, (height, width), *sizes)


@compiled
@no_type_check
def _explain(
    images, backdrops, hides, places, paints, alphas, least, sweeps, sprite, background
):
    """Run the sweeps of each image; write results into ``sprite`` and ``background``."""
    batch, channels, height, width = images.shape
    layers = len(alphas)
    # Per layer, the backdrop first: its unoccluded canvas, its transmittance through all
    # layers, and through those before the current one.
    canvases = np.empty((layers + 1, channels, height, width), images.dtype)
    by_all = np.empty((layers + 1, height, width), images.dtype)
    by_earlier = np.empty((layers + 1, height, width), images.dtype)
    # In the window of each layer: transmittance of the others through the layers after it.
    by_later = [np.empty((layers + 1, *alpha.shape[2:]), images.dtype) for alpha in alphas]
    # Bounding box of each layer: top, bottom, left, right.
    extents = np.empty((layers + 1, 4), np.int64)
    for b in range(batch):
        extents[:] = 0
        _draw(canvases[0], extents[0], backdrops[b, 0], 0, 0)
        for _ in range(sweeps):
            changed = False
            by_all[:] = 1
            for layer in range(layers - 1, -1, -1):
                alpha, (top, left) = alphas[layer][b], places[b, layer]
                _copy_window(by_all, by_later[layer], top, left)
                if sprite[b, layer] != EMPTY:
                    _occlude(by_all, alpha[sprite[b, layer]], hides[b, layer], top, left)
            if len(backdrops[b]) > 1:
                best = _best_background(images[b], backdrops[b], canvases, extents, by_all)
                background[b] = best
                _draw(canvases[0], extents[0], backdrops[b, best], 0, 0)
            by_earlier[:] = 1
            for layer in range(layers):
                paint, alpha = paints[layer][b], alphas[layer][b]
                top, left = places[b, layer]
                left_over = by_earlier, by_later[layer]
                empty, errors = _errors(
                    images[b],
                    canvases,
                    extents,
                    left_over,
                    hides[b, layer],
                    layer + 1,
                    paint,
                    alpha,
                    top,
                    left,
                )
                best = np.argmin(errors)
                if empty - errors[best] <= least:
                    best = EMPTY
                    extents[layer + 1] = 0
                else:  # also if an error is NaN, so that it reaches the loss
                    _draw(canvases[layer + 1], extents[layer + 1], paint[best], top, left)
                    _occlude(by_earlier, alpha[best], hides[b, layer], top, left)
                changed = changed or best != sprite[b, layer]
                sprite[b, layer] = best
            if not changed:
                break


@compiled
@no_type_check
def _errors(image, canvases, extents, left_over, hides, own, paint, alpha, top, left):
    """Return the squared error in the window with the layer empty, and with each candidate."""
    by_earlier, by_later = left_over
    count, tall, wide = alpha.shape
    channels = len(image)
    without = np.empty((channels, wide), image.dtype)
    hidden = np.empty((channels, wide), image.dtype)
    seen = np.empty(wide, image.dtype)
    empty, errors = 0.0, np.zeros(count)
    for y in range(tall):
        row = top + y
        without[:] = 0
        hidden[:] = 0
        for other in range(len(canvases)):
            first, last = max(left, extents[other, 2]), min(left + wide, extents[other, 3])
            if (
                other == own
                or not extents[other, 0] <= row < extents[other, 1]
                or first >= last
            ):
                continue
            start, end = first - left, last - left
            before, after = by_earlier[other, row, first:last], by_later[other, y, start:end]
            for x in range(len(before)):
                seen[x] = before[x] * after[x]
            hide = hides[other]
            for c in range(channels):
                color = canvases[other, c, row, first:last]
                all_seen, all_hidden = without[c, start:end], hidden[c, start:end]
                for x in range(len(color)):
                    value = seen[x] * color[x]
                    all_seen[x] += value
                    all_hidden[x] += hide * value
        before, after = by_earlier[own, row, left : left + wide], by_later[own, y]
        for x in range(wide):
            seen[x] = before[x] * after[x]
        for c in range(channels):
            error, target = without[c], image[c, row, left : left + wide]
            total = image.dtype.type(0)
            for x in range(wide):
                error[x] -= target[x]
                total += error[x] * error[x]
            empty += total
        for k in range(count):
            mask = alpha[k, y]
            for c in range(channels):
                error, under, shown = without[c], hidden[c], paint[k, c, y]
                total = image.dtype.type(0)
                for x in range(wide):
                    change = error[x] + seen[x] * shown[x] - under[x] * mask[x]
                    total += change * change
                errors[k] += total
    return empty, errors


@compiled
@no_type_check
def _occlude(left_over, alpha, hides, top, left):
    """Multiply transmittances by what one layer leaves visible of every other."""
    tall, wide = alpha.shape
    for other in range(len(left_over)):
        hide = hides[other]
        if hide != 0:
            for y in range(tall):
                mask, rest = alpha[y], left_over[other, top + y, left : left + wide]
                for x in range(wide):
                    rest[x] -= rest[x] * hide * mask[x]


@compiled
@no_type_check
def _draw(canvas, extent, paint, top, left):
    """Copy a layer onto its canvas, and set its bounding box."""
    channels, tall, wide = paint.shape
    for c in range(channels):
        for y in range(tall):
            source, target = paint[c, y], canvas[c, top + y, left : left + wide]
            for x in range(wide):
                target[x] = source[x]
    extent[0], extent[1], extent[2], extent[3] = top, top + tall, left, left + wide


@compiled
@no_type_check
def _copy_window(canvases, windows, top, left):
    """Copy a window of all canvases."""
    layers, tall, wide = windows.shape
    for layer in range(layers):
        for y in range(tall):
            target, source = windows[layer, y], canvases[layer, top + y, left : left + wide]
            for x in range(wide):
                target[x] = source[x]


@compiled
@no_type_check
def _best_background(image, backdrops, canvases, extents, by_all):
    """Return the backdrop with the lowest squared error behind the current layers."""
    channels, height, width = image.shape
    missing = np.empty(width, image.dtype)
    errors = np.zeros(len(backdrops))
    for c in range(channels):
        for y in range(height):
            for x in range(width):
                missing[x] = image[c, y, x]
            for layer in range(1, len(canvases)):
                top, bottom, left, right = extents[layer]
                if top <= y < bottom:
                    for x in range(left, right):
                        missing[x] -= by_all[layer, y, x] * canvases[layer, c, y, x]
            for which in range(len(backdrops)):
                for x in range(width):
                    error = missing[x] - by_all[0, y, x] * backdrops[which, c, y, x]
                    errors[which] += error * error
    return np.argmin(errors)
