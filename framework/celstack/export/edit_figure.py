"""The figure of the paper's four manipulations (Fig. 5): one image with edited objects."""

from __future__ import annotations

import colorsys
from typing import NamedTuple

import torch
from jaxtyping import Float
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from celstack.evaluation.visualize import to_pil_image
from celstack.export.scene_editing import (
    move_objects,
    object_centers,
    recolor_sprites,
    resize_objects,
    swap_sprites,
)
from celstack.geometry.sampling import extent
from celstack.model.decomposer import Decomposer
from celstack.scene import Scene

COLUMNS = 6
SIZE_FACTORS = (0.4, 0.6, 0.8, 1.25, 1.5, 2.0)
MIN_CELL_PIXELS = 128
"""Smaller images are enlarged, by an integer factor, to about this size."""
GAP_PIXELS = 6
LABEL_WIDTH_PIXELS = 104
"""Width of the row titles."""


class EditRow(NamedTuple):
    """One kind of edit.

    Attributes:
        title: Its name in the figure.
        scenes: The edited scenes; none if the model does not support the edit.
        unsupported: Why the model does not support it, or "".
    """

    title: str
    scenes: list[Scene]
    unsupported: str


def edit_scene(decomposer: Decomposer, scene: Scene) -> list[EditRow]:
    """Edit the scene of one image in the four ways of the paper's Fig. 5."""
    layers, channels = scene.sprite.shape[1], decomposer.channels
    generator = torch.Generator().manual_seed(0)
    reach = torch.tensor(extent(*decomposer.canvas)) * 0.7
    centers = object_centers(decomposer, scene).cpu()
    others = max(1, decomposer.sprites.count - 1)
    each = torch.arange(layers)
    # Different steps per layer, so that even few sprites give a new image in every column.
    steps = [1 + (c * others // COLUMNS + c * each) % others for c in range(COLUMNS)]
    colors = [_layer_colors(layers, channels, column / COLUMNS) for column in range(COLUMNS)]
    places = [(torch.rand(centers.shape, generator=generator) * 2 - 1) * reach for _ in colors]
    edits = {
        ("other sprites", "this run has a single sprite"): [
            swap_sprites(decomposer, scene, by[None].to(scene.sprite)) for by in steps
        ],
        ("other colors", "no transform of this run changes the color of a sprite"): [
            recolor_sprites(decomposer, scene, color.to(scene.layer_params)) for color in colors
        ],
        ("other positions", "no transform of this run moves a sprite"): [
            move_objects(decomposer, scene, (place - centers).to(scene.layer_params))
            for place in places
        ],
        ("other sizes", "no transform of this run resizes a sprite"): [
            resize_objects(decomposer, scene, factor) for factor in SIZE_FACTORS
        ],
    }
    rows = []
    for (title, reason), scenes in edits.items():
        done = [found or scene for found in scenes] if any(scenes) else []
        rows.append(EditRow(title, done, "" if done else reason))
    return rows


def fullest_image(decomposer: Decomposer, scenes: Scene) -> int:
    """Return the index of the image with most objects; of several, where most is visible."""
    with torch.no_grad():
        visible = decomposer.render(scenes).visible.clamp(0, 1).mean((1, 2, 3))
    return int((scenes.filled.sum(1) + visible).argmax())


def draw_figure(
    decomposer: Decomposer, image: Float[Tensor, "C H W"], scene: Scene, rows: list[EditRow]
) -> Image.Image:
    """Draw an image and its reconstruction, and below them a row for each kind of edit."""
    scale = max(1, MIN_CELL_PIXELS // max(decomposer.canvas))
    with torch.no_grad():
        lines = [
            ("image and\nreconstruction", [image, decomposer.render(scene).image[0]]),
            *(
                (row.title, [decomposer.render(edited).image[0] for edited in row.scenes])
                for row in rows
                if row.scenes
            ),
        ]
    height, width = (scale * side + GAP_PIXELS for side in decomposer.canvas)
    sheet = Image.new(
        "RGB", (LABEL_WIDTH_PIXELS + COLUMNS * width, GAP_PIXELS + len(lines) * height), "white"
    )
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for number, (title, images) in enumerate(lines):
        top = GAP_PIXELS + number * height
        pen.text((GAP_PIXELS, top + height // 2 - GAP_PIXELS), title, "black", font)
        for column, one in enumerate(images):
            picture = to_pil_image(one.cpu())
            size = (picture.width * scale, picture.height * scale)
            picture = picture.resize(size, Image.Resampling.NEAREST)
            sheet.paste(picture, (LABEL_WIDTH_PIXELS + column * width, top))
    return sheet


def _layer_colors(layers: int, channels: int, turn: float) -> Float[Tensor, "1 L C"]:
    """Return a color for every layer, far from those of the others."""
    hues = [(turn + layer * 0.618) % 1.0 for layer in range(layers)]
    if channels == 1:
        return torch.tensor([[[0.2 + 0.8 * hue] for hue in hues]])
    return torch.tensor([[colorsys.hsv_to_rgb(hue, 0.8, 0.95) for hue in hues]])
