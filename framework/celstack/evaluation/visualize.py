"""Visualization: pictures of sprites, decompositions and batches."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate, pad

from celstack.data.loader import ordered_batches
from celstack.evaluation.sprite_stats import MAX_EXEMPLARS, SpriteStats
from celstack.interfaces.dataset import Batch
from celstack.model.decomposer import Decomposer
from celstack.model.eval_mode import eval_mode
from celstack.recipe.assembly import Assembly

EXAMPLES_PER_ROW = 8
CHECKER_PIXELS = 4
TARGET_SIDE_PIXELS = 64
"""Smaller images are enlarged, by a whole factor, up to this side."""


def draw_sprites(decomposer: Decomposer) -> list[Image.Image]:
    """Draw each sprite, with its alpha channel."""
    images = decomposer.sprites.images().detach().cpu()
    return [to_pil_image(image) for image in images]


def draw_examples(decomposer: Decomposer, assembly: Assembly) -> Image.Image:
    """Draw images of the evaluation split: input, reconstruction, layers on a checkerboard."""
    device = next(decomposer.parameters()).device
    split = assembly.evaluation.split
    batch = next(ordered_batches(assembly.dataset, split, EXAMPLES_PER_ROW, EXAMPLES_PER_ROW))
    with eval_mode(decomposer), torch.no_grad():
        rendering = decomposer.render(decomposer.explain(batch.images.to(device)))
    layers = on_checkerboard(rendering.layers.flatten(0, 1).cpu())
    layers = layers.view(*rendering.layers.shape[:2], *layers.shape[1:])
    rows = [batch.images, rendering.image.cpu(), *layers.unbind(1)]
    return tile(torch.stack([row.clamp(0, 1) for row in rows], dim=1))


def draw_best_sprites(
    decomposer: Decomposer, stats: SpriteStats, assembly: Assembly
) -> Image.Image | None:
    """Draw the sprites with the largest error reduction, one column each, as in the paper.

    Below a sprite are its mask and its exemplars. Return None if no sprite was used.
    """
    best = stats.best(EXAMPLES_PER_ROW)
    if not best:
        return None
    sprites = decomposer.sprites.images().detach().cpu()[best]
    masks = sprites[:, -1:].clamp(0, 1).expand(-1, sprites.shape[1] - 1, -1, -1)
    columns = []
    for number, sprite, mask in zip(best, on_checkerboard(sprites), masks, strict=True):
        exemplars = [image for _, image in stats.exemplars[number]]
        images = assembly.dataset.read(assembly.evaluation.split, exemplars).images
        blank = images.new_ones(MAX_EXEMPLARS - len(images), *images.shape[1:])
        own = [_center_on_canvas(one, decomposer.canvas) for one in (sprite, mask)]
        columns.append(torch.cat([torch.stack(own), images, blank]))
    return tile(torch.stack(columns), max(1, 2 * TARGET_SIDE_PIXELS // max(decomposer.canvas)))


def _center_on_canvas(
    image: Float[Tensor, "C h w"], canvas: tuple[int, int]
) -> Float[Tensor, "C H W"]:
    """Center an image on a white canvas, scaled down if it is larger."""
    (height, width), (tall, wide) = image.shape[1:], canvas
    scale = min(1.0, tall / height, wide / width)
    if scale < 1.0:
        size = (max(1, int(height * scale)), max(1, int(width * scale)))
        image = interpolate(image[None], size, mode="bilinear", antialias=True)[0]
        height, width = size
    top, left = (tall - height) // 2, (wide - width) // 2
    frame = (left, wide - width - left, top, tall - height - top)
    return pad(image, frame, value=1.0)


def draw_batch(batch: Batch) -> Image.Image:
    """Draw images, and below each its instances and classes, if the batch has them."""
    rows = [
        batch.images,
        *(color_labels(x) for x in (batch.instances, batch.classes) if x is not None),
    ]
    if batch.images.shape[1] == 1:
        rows = [row.expand(-1, 3, -1, -1) for row in rows]
    together = torch.stack(rows, dim=1)
    missing = -len(together) % min(EXAMPLES_PER_ROW, len(together))
    blank = together.new_ones(missing, *together.shape[1:])
    lines = torch.cat([together, blank]).split(min(EXAMPLES_PER_ROW, len(together)))
    scale = max(1, TARGET_SIDE_PIXELS // max(batch.images.shape[-2:]))
    return tile(torch.cat(lines, dim=1), scale)


def color_labels(labels: Int[Tensor, "B H W"]) -> Float[Tensor, "B 3 H W"]:
    """Give every label its own color; 0 is black."""
    # Steps of the golden ratio never return to the same hue.
    turns = labels.double()[:, None] * 0.618 + torch.tensor([0, 1 / 3, 2 / 3])[:, None, None]
    colors = 0.55 + 0.45 * torch.cos(2 * torch.pi * turns)
    return torch.where(labels[:, None] > 0, colors, 0.0).float()


def on_checkerboard(images: Float[Tensor, "n D h w"]) -> Float[Tensor, "n C h w"]:
    """Composite images over a light gray checkerboard, to show transparency."""
    height, width = images.shape[-2:]
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    squares = 0.75 + 0.2 * ((rows // CHECKER_PIXELS + columns // CHECKER_PIXELS) % 2)
    color, alpha = images[:, :-1].clamp(0, 1), images[:, -1:].clamp(0, 1)
    return color * alpha + squares * (1 - alpha)


def tile(images: Float[Tensor, "columns rows C h w"], scale: int = 3) -> Image.Image:
    """Lay images out in a grid, enlarged by ``scale``, with white lines between them."""
    columns, rows, channels, height, width = images.shape
    table = images.new_ones(channels, rows * (height + 1) + 1, columns * (width + 1) + 1)
    for column in range(columns):
        for row in range(rows):
            top, left = 1 + row * (height + 1), 1 + column * (width + 1)
            table[:, top : top + height, left : left + width] = images[column, row]
    picture = to_pil_image(table)
    return picture.resize(
        (picture.width * scale, picture.height * scale), Image.Resampling.NEAREST
    )


def to_pil_image(image: Float[Tensor, "D h w"]) -> Image.Image:
    """Convert an image of 1 to 4 channels: gray, gray and alpha, RGB, or RGBA."""
    values = (image.detach().clamp(0, 1) * 255).round().to(torch.uint8)
    pixels = np.ascontiguousarray(values.permute(1, 2, 0).numpy())
    return Image.fromarray(pixels[:, :, 0] if len(image) == 1 else pixels)
