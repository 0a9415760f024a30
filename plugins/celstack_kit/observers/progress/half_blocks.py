"""Half blocks: pictures in a terminal, two pixels to a character."""

from itertools import groupby

import torch
from jaxtyping import Float
from rich.text import Text
from torch import Tensor

SIDE = 12
"""The most pixels that a picture is wide or high."""
LINES = 3
"""The most lines of pictures."""
SQUARES = (0.22, 0.32)
"""What transparent pixels look like: neither black nor white is lost on it."""


def draw(images: Float[Tensor, "K D h w"], columns: int, rows: int) -> Text:
    """Draw images with alpha side by side, as many as have room, and say how many have not."""
    pictures = _on_squares(_shrink(images.detach().float().cpu()))
    pictures = pictures.expand(-1, 3, -1, -1) if pictures.shape[1] == 1 else pictures
    across = max(1, columns // (pictures.shape[-1] + 1))
    down = max(1, min(LINES, (rows - 1) // (pictures.shape[-2] // 2 + 1)))
    shown = pictures[: across * down]
    lines = [row for some in shown.split(across) for row in [Text(), *_rows(some)]]
    if len(shown) < len(pictures):
        lines.append(Text(f"and {len(pictures) - len(shown)} more"))
    return Text("\n").join(lines)


def _shrink(images: Float[Tensor, "K D h w"]) -> Float[Tensor, "K D a b"]:
    """Make images no larger than SIDE, and an even number of pixels high."""
    factor = min(1.0, SIDE / max(images.shape[-2:]))
    height, width = (max(1, round(side * factor)) for side in images.shape[-2:])
    size = (height + height % 2, width)
    return torch.nn.functional.interpolate(images, size, mode="area")


def _on_squares(images: Float[Tensor, "K D h w"]) -> Float[Tensor, "K C h w"]:
    """Lay images over squares of two pixels, to show where they are transparent."""
    rows, columns = (torch.arange(side) // 2 for side in images.shape[-2:])
    squares = torch.tensor(SQUARES)[(rows[:, None] + columns) % 2]
    colour, alpha = images[:, :-1].clamp(0, 1), images[:, -1:].clamp(0, 1)
    return colour * alpha + squares * (1 - alpha)


def _rows(pictures: Float[Tensor, "n 3 h w"]) -> list[Text]:
    """Draw pictures in one line, of half as many rows as they have."""
    values = (pictures * 255).round().int().permute(2, 0, 3, 1).tolist()
    rows = []
    for upper, lower in zip(values[0::2], values[1::2], strict=True):
        row = Text()
        for over, under in zip(upper, lower, strict=True):
            # Neighbours of the same colours share a style: terminals may be far away.
            for (top, bottom), same in groupby(zip(over, under, strict=True)):
                style = f"{_spell(top)} on {_spell(bottom)}"
                row.append("▀" * len(list(same)), style=style)
            row.append(" ")
        rows.append(row)
    return rows


def _spell(colour: list[int]) -> str:
    return f"rgb({colour[0]},{colour[1]},{colour[2]})"
