"""`celstack vary`: draw an image with other sprites, colors, positions and sizes."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument(
        "--image",
        metavar="FILE",
        help="image to edit (default: one of the run's evaluation images)",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="image file to write (default: vary-RECIPE-RUN.png)"
    )


def main(arguments: argparse.Namespace) -> None:
    """Decompose an image, edit its scene in four ways, and draw the results."""
    from celstack.cli.run_folders import default_output
    from celstack.errors import CelstackError
    from celstack.runs.finished import check_run

    folder = Path(arguments.run)
    check_run(folder)
    out = Path(arguments.out or f"{default_output('vary', folder)}.png")
    if arguments.image and not Path(arguments.image).is_file():
        raise CelstackError(f"--image {arguments.image}: no such file")
    if out.suffix.lower() != ".png":
        raise CelstackError(f"--out {out}: must end with .png")

    import torch

    from celstack.cli.output import print_line
    from celstack.export.decompose import read_images
    from celstack.export.edit_figure import draw_figure, edit_scene, fullest_image
    from celstack.files import commit, staging_dir
    from celstack.runs.examples import find_examples
    from celstack.runs.open import open_run

    run = open_run(folder)
    if arguments.image:
        images = read_images([arguments.image], run.decomposer)
    else:
        try:
            images = find_examples(folder, run.assembly).images
        except CelstackError as error:
            raise CelstackError(f"{error}; name an image with --image") from error
    with torch.no_grad():
        scenes = run.decomposer.explain(images)
    chosen = fullest_image(run.decomposer, scenes)
    scene = scenes[chosen : chosen + 1]
    rows = edit_scene(run.decomposer, scene)
    with staging_dir(out.parent) as staging:
        draw_figure(run.decomposer, images[chosen], scene, rows).save(staging / out.name)
        commit(staging, out.parent)
    for row in rows:
        if row.unsupported:
            print_line(f"no {row.title}: {row.unsupported}")
    print_line(f"{out}: {', '.join(row.title for row in rows if row.scenes)}")
