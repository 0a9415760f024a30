"""`celstack decompose`: take images apart with what a run has learned."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("run", metavar="RUN", help="the folder of a run")
    parser.add_argument(
        "images", nargs="+", metavar="IMAGE_OR_FOLDER", help="images, or folders of them"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="where the results go")
    parser.add_argument("--device", default="auto", help="as for run-recipe (auto)")


def main(arguments: argparse.Namespace) -> None:
    """Find the images, open the run, and write a folder for each image."""
    from celstack.data.images import find_images
    from celstack.runs.finished import check_run

    folder, out = Path(arguments.run), Path(arguments.out)
    check_run(folder)
    images, skipped = find_images(arguments.images, out)

    from celstack.cli.output import complain, say
    from celstack.counting import counting
    from celstack.export.decompose import OVERVIEW, decompose
    from celstack.runs.open import open_run
    from celstack.system import find_device

    opened = open_run(folder)
    decomposer = opened.decomposer.to(find_device(arguments.device))
    written = 0

    def watch(done: int, damaged: int) -> None:
        nonlocal written, skipped
        written += done
        skipped += damaged
        show(done + damaged)

    try:
        with counting("decomposing", "decomposed", len(images)) as show:
            batch_size = opened.assembly.evaluation.batch_size
            decompose(decomposer, images, out, batch_size, watch)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {_count(written)} in {out}") from None
    if skipped:
        files = "1 file that is" if skipped == 1 else f"{skipped} files that are"
        complain(f"warning: {files} no image, or damaged, left out", 0)
    first = f" of the first {OVERVIEW}" if written > OVERVIEW else ""
    say(f"{_count(written)} in {out}; look at {out / 'overview.png'}{first}")


def _count(images: int) -> str:
    return "1 image is" if images == 1 else f"{images} images are"
