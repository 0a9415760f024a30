"""The figure of the paper's four manipulations (Fig. 5): one image, varied in its objects."""

from __future__ import annotations

import colorsys
from typing import NamedTuple

import torch
from jaxtyping import Float
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from celstack.evaluation.visualize import to_pil_image
from celstack.export.scene_editing import centres, move, recolour, resize, swap
from celstack.geometry.sampling import extent
from celstack.model.decomposer import Decomposer
from celstack.scene import EMPTY, Scene

COLUMNS = 6
FACTORS = (0.4, 0.6, 0.8, 1.25, 1.5, 2.0)
CELL = 128
"""Images of a smaller side are enlarged to about so many pixels."""
GAP = 6
MARGIN = 104
"""Room for what rows are called."""


class Row(NamedTuple):
    """One way to vary a scene: what it is called, the images, and why there are none."""

    title: str
    scenes: list[Scene]
    obstacle: str


def vary(decomposer: Decomposer, scene: Scene) -> list[Row]:
    """Vary the scene of one image in the four ways; what a model cannot do has no scenes."""
    layers, channels = scene.sprite.shape[1], decomposer.channels
    chance = torch.Generator().manual_seed(0)
    reach = torch.tensor(extent(*decomposer.canvas)) * 0.7
    now = centres(decomposer, scene).cpu()
    others = max(1, decomposer.sprites.count - 1)
    each = torch.arange(layers)
    # Layers differ, so that few sprites, too, make as many images as there are columns.
    steps = [1 + (c * others // COLUMNS + c * each) % others for c in range(COLUMNS)]
    hues = [_hues(layers, channels, column / COLUMNS) for column in range(COLUMNS)]
    places = [(torch.rand(now.shape, generator=chance) * 2 - 1) * reach for _ in hues]
    made = {
        ("other sprites", "it has a single sprite"): [
            swap(decomposer, scene, by[None].to(scene.sprite)) for by in steps
        ],
        ("other colours", "none of its transforms changes the colour of a sprite"): [
            recolour(decomposer, scene, colours.to(scene.layer_params)) for colours in hues
        ],
        ("other places", "none of its transforms can be told where to put a sprite"): [
            move(decomposer, scene, (place - now).to(scene.layer_params)) for place in places
        ],
        ("other sizes", "none of its transforms can be told how large a sprite is"): [
            resize(decomposer, scene, factor) for factor in FACTORS
        ],
    }
    rows = []
    for (title, obstacle), scenes in made.items():
        done = [found or scene for found in scenes] if any(scenes) else []
        rows.append(Row(title, done, "" if done else obstacle))
    return rows


def fullest(decomposer: Decomposer, scenes: Scene) -> int:
    """Return which of several images has most objects, or shows most of them: one to vary."""
    with torch.no_grad():
        shown = decomposer.render(scenes).visible.clamp(0, 1).mean((1, 2, 3))
    return int(((scenes.sprite != EMPTY).sum(1) + shown).argmax())


def draw(
    decomposer: Decomposer, image: Float[Tensor, "C H W"], scene: Scene, rows: list[Row]
) -> Image.Image:
    """Draw image and reconstruction, and below them a row for each way to vary."""
    scale = max(1, CELL // max(decomposer.canvas))
    with torch.no_grad():
        lines = [
            ("image and\nreconstruction", [image, decomposer.render(scene).image[0]]),
            *(
                (row.title, [decomposer.render(varied).image[0] for varied in row.scenes])
                for row in rows
                if row.scenes
            ),
        ]
    height, width = (scale * side + GAP for side in decomposer.canvas)
    sheet = Image.new("RGB", (MARGIN + COLUMNS * width, GAP + len(lines) * height), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for number, (title, images) in enumerate(lines):
        top = GAP + number * height
        pen.text((GAP, top + height // 2 - GAP), title, "black", font)
        for column, one in enumerate(images):
            picture = to_pil_image(one.cpu())
            size = (picture.width * scale, picture.height * scale)
            picture = picture.resize(size, Image.Resampling.NEAREST)
            sheet.paste(picture, (MARGIN + column * width, top))
    return sheet


def _hues(layers: int, channels: int, turn: float) -> Float[Tensor, "1 L C"]:
    """Return a colour for every layer, far from those of the others."""
    hues = [(turn + layer * 0.618) % 1.0 for layer in range(layers)]
    if channels == 1:
        return torch.tensor([[[0.2 + 0.8 * hue] for hue in hues]])
    return torch.tensor([[colorsys.hsv_to_rgb(hue, 0.8, 0.95) for hue in hues]])
