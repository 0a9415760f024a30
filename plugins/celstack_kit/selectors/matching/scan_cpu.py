"""Template matching at selected positions, compiled for CPUs."""

from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from celstack.model.numba_jit import array, check_shape, compiled, parallel_for
from celstack_kit.selectors.matching.templates import MIN_ENERGY, LayerContext


def scan(
    context: LayerContext,
    where: Bool[Tensor, "B H W"],
    templates: Float[Tensor, "M D t t"],
    sprites: int,
    tints: bool,
    offsets: bool,
) -> tuple[Float[Tensor, "B K"], Int[Tensor, "B K"], Int[Tensor, "B K 2"]]:
    """Return each sprite's largest error reduction, its template, and its row and column.

    Args:
        context: What the layer is composited with.
        where: Positions of the templates' centers: a pixel's top left corner.
        templates: M / K templates for each of K sprites, colors and mask, of even size.
        sprites: The number of sprites K.
        tints: Whether color gains, in [0, 1], are optimized; otherwise they are 1.
        offsets: Whether color offsets are optimized, too.
    """
    batch, channels, height, width = context.residual.shape
    check_shape("hidden", context.hidden, batch, channels, height, width)
    check_shape("transmittance", context.transmittance, batch, 1, height, width)
    check_shape("positions", where, batch, height, width)
    check_shape("templates", templates, len(templates), channels + 1, *templates.shape[2:])
    maps = [array(one) for one in (*context, where)]
    boxes = _content_boxes(templates)
    values = array(templates)
    found = (
        np.full((batch, sprites), -np.inf, values.dtype),
        np.zeros((batch, sprites), np.int64),
        np.zeros((batch, sprites, 2), np.int64),
    )

    def search(some: slice) -> None:
        _scan(
            *(one[some] for one in maps),
            values,
            boxes,
            tints,
            offsets,
            *(one[some] for one in found),
        )

    parallel_for(search, batch)
    score, template, place = (torch.from_numpy(one) for one in found)
    return score, template, place


def _content_boxes(templates: Float[Tensor, "M D t t"]) -> np.ndarray:
    """Return the first and last row and column of each template that is not transparent."""
    opaque = array(templates[:, -1].abs() > 0.02)
    boxes = np.zeros((len(opaque), 4), np.int64)
    for number, mask in enumerate(opaque):
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        if len(rows):
            boxes[number] = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
    return boxes


@compiled
@no_type_check
def _scan(
    residual,
    hidden,
    transmittance,
    where,
    templates,
    boxes,
    tints,
    offsets,
    score,
    template,
    place,
):
    """Search the images one by one; write results into the last three arrays.

    As in ``templates``: with gain g and offset o, a template of color c and mask m changes
    the image by m (E (g c + o) - D). This lowers the squared error by the sum of r^2 - y^2
    and of 2 g b1 + 2 o b2 - g^2 a11 - 2 g o a12 - o^2 a22, where y = r + m D, b1 = <y, m E c>,
    b2 = <y, m E>, a11 = <m E c, m E c>, a12 = <m E c, m E>, a22 = <m E, m E>.
    """
    batch, channels, height, width = residual.shape
    sprites, half = score.shape[1], templates.shape[2] // 2
    variants = len(templates) // sprites
    for n in range(batch):
        for row in range(height):
            for column in range(width):
                if not where[n, row, column]:
                    continue
                for t in range(len(templates)):
                    top, left = row - half, column - half
                    first = max(boxes[t, 0], -top)
                    last = min(boxes[t, 1], height - top)
                    start = max(boxes[t, 2], -left)
                    stop = min(boxes[t, 3], width - left)
                    if first >= last or start >= stop:
                        continue
                    total = 0.0
                    for channel in range(channels):
                        a11 = a12 = a22 = b1 = b2 = gone = np.float32(0.0)
                        for i in range(first, last):
                            masks = templates[t, channels, i, start:stop]
                            colors = templates[t, channel, i, start:stop]
                            light = transmittance[n, 0, top + i, left + start : left + stop]
                            rest = residual[n, channel, top + i, left + start : left + stop]
                            behind = hidden[n, channel, top + i, left + start : left + stop]
                            for j in range(stop - start):
                                over = masks[j] * behind[j]
                                y = rest[j] + over
                                flat = masks[j] * light[j]
                                own = flat * colors[j]
                                a11 += own * own
                                a12 += own * flat
                                a22 += flat * flat
                                b1 += y * own
                                b2 += y * flat
                                gone -= over * (2 * rest[j] + over)
                        gain, offset = 1.0, 0.0
                        if offsets:
                            spread = a11 - a12 * a12 / max(a22, MIN_ENERGY)
                            both = b1 - a12 * b2 / max(a22, MIN_ENERGY)
                            gain = min(1.0, max(0.0, both / max(spread, MIN_ENERGY)))
                            offset = (b2 - gain * a12) / max(a22, MIN_ENERGY)
                        elif tints:
                            gain = min(1.0, max(0.0, b1 / max(a11, MIN_ENERGY)))
                        fitted = 2 * (gain * b1 + offset * b2) - gain * gain * a11
                        fitted -= offset * (2 * gain * a12 + offset * a22)
                        total += fitted + gone
                    sprite = t // variants
                    if total > score[n, sprite]:
                        score[n, sprite] = total
                        template[n, sprite] = t
                        place[n, sprite, 0] = row
                        place[n, sprite, 1] = column
