"""`celstack sprites`: write the sprites and backgrounds of a run as pictures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

    from celstack.model.decomposer import Decomposer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("run", metavar="RUN", help="the folder of a run")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="where they go (sprites-RECIPE-RUN, after the run's folder)",
    )


def main(arguments: argparse.Namespace) -> None:
    """Open the run and write its pictures, with one sheet of all of them."""
    from celstack.runs.finished import check_run

    folder = Path(arguments.run)
    check_run(folder)

    from celstack.cli.output import say
    from celstack.files import commit, staging_dir
    from celstack.runs.open import open_run

    real = folder.resolve()
    out = Path(arguments.out or f"sprites-{real.parent.name}-{real.name}")
    pictures = draw(open_run(folder).decomposer)
    with staging_dir(out) as draft:
        for name, picture in pictures.items():
            picture.save(draft / name)
        commit(draft, out)
    say(f"{len(pictures) - 1} pictures are in {out}; {out / 'sheet.png'} shows all of them")


def draw(decomposer: Decomposer) -> dict[str, Image]:
    """Draw every sprite and background, and a sheet, by the names of the files."""
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
    return {**pictures, "sheet.png": _below_each_other(sheets)}


def _below_each_other(sheets: list[Image]) -> Image:
    from PIL import Image

    size = max(sheet.width for sheet in sheets), sum(sheet.height for sheet in sheets)
    together = Image.new("RGB", size, "white")
    top = 0
    for sheet in sheets:
        together.paste(sheet, (0, top))
        top += sheet.height
    return together
