"""Draw images in a terminal with half-block characters, two pixels each."""

from itertools import groupby

import torch
from jaxtyping import Float
from rich.text import Text
from torch import Tensor

MAX_SIDE_PIXELS = 12
"""Larger images are shrunk to this width or height."""
MAX_IMAGE_ROWS = 3
"""How many rows of images are drawn at most."""
CHECKERBOARD = (0.22, 0.32)
"""The grays behind transparent pixels, which differ from black and white."""


def draw(images: Float[Tensor, "K D h w"], columns: int, rows: int) -> Text:
    """Draw images with alpha side by side, as many as fit, and the number of the others.

    Args:
        images: Color channels, then alpha.
        columns: The width of the terminal in characters.
        rows: Its height.
    """
    pictures = _on_checkerboard(_shrink(images.detach().float().cpu()))
    pictures = pictures.expand(-1, 3, -1, -1) if pictures.shape[1] == 1 else pictures
    across = max(1, columns // (pictures.shape[-1] + 1))
    down = max(1, min(MAX_IMAGE_ROWS, (rows - 1) // (pictures.shape[-2] // 2 + 1)))
    shown = pictures[: across * down]
    lines = [row for some in shown.split(across) for row in [Text(), *_rows(some)]]
    if len(shown) < len(pictures):
        lines.append(Text(f"and {len(pictures) - len(shown)} more"))
    return Text("\n").join(lines)


def _shrink(images: Float[Tensor, "K D h w"]) -> Float[Tensor, "K D a b"]:
    """Resize images to at most MAX_SIDE_PIXELS and an even height."""
    factor = min(1.0, MAX_SIDE_PIXELS / max(images.shape[-2:]))
    height, width = (max(1, round(side * factor)) for side in images.shape[-2:])
    size = (height + height % 2, width)
    return torch.nn.functional.interpolate(images, size, mode="area")


def _on_checkerboard(images: Float[Tensor, "K D h w"]) -> Float[Tensor, "K C h w"]:
    """Composite images over a checkerboard with squares of two pixels."""
    rows, columns = (torch.arange(side) // 2 for side in images.shape[-2:])
    squares = torch.tensor(CHECKERBOARD)[(rows[:, None] + columns) % 2]
    color, alpha = images[:, :-1].clamp(0, 1), images[:, -1:].clamp(0, 1)
    return color * alpha + squares * (1 - alpha)


def _rows(pictures: Float[Tensor, "n 3 h w"]) -> list[Text]:
    """Draw images side by side; two rows of pixels become one row of text."""
    values = (pictures * 255).round().int().permute(2, 0, 3, 1).tolist()
    rows = []
    for upper, lower in zip(values[0::2], values[1::2], strict=True):
        row = Text()
        for over, under in zip(upper, lower, strict=True):
            # Equal neighbors share one style, because terminals may be on slow connections.
            for (top, bottom), same in groupby(zip(over, under, strict=True)):
                style = f"{_rgb(top)} on {_rgb(bottom)}"
                row.append("▀" * len(list(same)), style=style)
            row.append(" ")
        rows.append(row)
    return rows


def _rgb(color: list[int]) -> str:
    return f"rgb({color[0]},{color[1]},{color[2]})"
