"""`celstack sprites`: write the sprites and backgrounds of a run as image files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

    from celstack.model.decomposer import Decomposer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="folder for the images (default: sprites-RECIPE-RUN)",
    )


def main(arguments: argparse.Namespace) -> None:
    """Write an image file for each sprite and background, and a sheet of all of them."""
    from celstack.runs.finished import check_run

    folder = Path(arguments.run)
    check_run(folder)

    from celstack.cli.output import print_line
    from celstack.cli.run_folders import default_output
    from celstack.files import commit, staging_dir
    from celstack.runs.open import open_run

    out = Path(arguments.out or default_output("sprites", folder))
    pictures = draw_sprites(open_run(folder).decomposer)
    with staging_dir(out) as staging:
        for name, picture in pictures.items():
            picture.save(staging / name)
        commit(staging, out)
    print_line(f"{len(pictures) - 1} images written to {out}; all in one: {out / 'sheet.png'}")


def draw_sprites(decomposer: Decomposer) -> dict[str, Image]:
    """Draw every sprite and background, and a sheet of all; return them by file name."""
    import torch

    from celstack.evaluation.visualize import on_checkerboard
    from celstack.export.decompose import contact_sheet
    from celstack.export.openraster import to_rgba

    kinds = {"sprite": decomposer.sprites, "background": decomposer.backgrounds}
    pictures, sheets = {}, []
    with torch.no_grad():
        for kind, prototype in kinds.items():
            if prototype is None:
                continue
            images = prototype.images()
            for number, image in enumerate(images):
                pictures[f"{kind}-{number:02d}.png"] = to_rgba(image)
            shown = on_checkerboard(images).expand(-1, 3, -1, -1)
            sheets.append(contact_sheet(shown[:, None]))
    return {**pictures, "sheet.png": _stack_vertically(sheets)}


def _stack_vertically(sheets: list[Image]) -> Image:
    from PIL import Image

    size = max(sheet.width for sheet in sheets), sum(sheet.height for sheet in sheets)
    together = Image.new("RGB", size, "white")
    top = 0
    for sheet in sheets:
        together.paste(sheet, (0, top))
        top += sheet.height
    return together
