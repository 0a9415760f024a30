"""`celstack decompose`: decompose images with the model of a run."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument(
        "images", nargs="+", metavar="IMAGE_OR_FOLDER", help="image files, or folders of them"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the results")
    parser.add_argument("--device", default="auto", help="as of run-recipe (default: auto)")


def main(arguments: argparse.Namespace) -> None:
    """Write a folder with the decomposition of each image."""
    from celstack.data.images import find_images
    from celstack.runs.finished import check_run

    folder, out = Path(arguments.run), Path(arguments.out)
    check_run(folder)
    images, skipped = find_images(arguments.images, out)

    from celstack.cli.output import print_line, print_warning
    from celstack.export.decompose import MAX_OVERVIEW_IMAGES, decompose
    from celstack.progress import WorkProgress
    from celstack.runs.open import open_run
    from celstack.system import find_device

    opened = open_run(folder)
    decomposer = opened.decomposer.to(find_device(arguments.device))
    written = 0

    def on_progress(done: int, damaged: int) -> None:
        nonlocal written, skipped
        written += done
        skipped += damaged
        progress.advance(done + damaged)

    try:
        with WorkProgress("decomposing images", len(images)) as progress:
            batch_size = opened.assembly.evaluation.batch_size
            decompose(decomposer, images, out, batch_size, on_progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Interrupted; {_count(written)} written to {out}") from None
    if skipped:
        files = "1 file" if skipped == 1 else f"{skipped} files"
        print_warning(f"skipped {files}: not an image, or damaged")
    first = f" of the first {MAX_OVERVIEW_IMAGES}" if written > MAX_OVERVIEW_IMAGES else ""
    print_line(f"{_count(written)} written to {out}")
    print_line(f"Overview{first}: {out / 'overview.png'}")


def _count(images: int) -> str:
    return "1 image" if images == 1 else f"{images} images"
