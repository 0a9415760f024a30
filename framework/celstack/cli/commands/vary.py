"""`celstack vary`: change sprites, colours, places and sizes in an image, as a figure."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("run", metavar="RUN", help="the folder of a run")
    parser.add_argument(
        "--image", metavar="FILE", help="an image of yours (one that the run was judged on)"
    )
    parser.add_argument("--out", metavar="FILE", help="the picture (vary-RECIPE-RUN.png)")


def main(arguments: argparse.Namespace) -> None:
    """Explain an image, edit its scene in four ways, and draw what comes of it."""
    from celstack.errors import CelstackError
    from celstack.runs.finished import check_run

    folder = Path(arguments.run)
    check_run(folder)
    real = folder.resolve()
    out = Path(arguments.out or f"vary-{real.parent.name}-{real.name}.png")
    if arguments.image and not Path(arguments.image).is_file():
        raise CelstackError(f"--image {arguments.image}: there is no such file")
    if out.suffix.lower() != ".png":
        raise CelstackError(f"--out {out}: its name must end with .png")

    import torch

    from celstack.cli.output import say
    from celstack.export.decompose import read_images
    from celstack.export.edit_figure import draw, fullest, vary
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
            raise CelstackError(f"{error}; --image varies one of yours") from error
    with torch.no_grad():
        scenes = run.decomposer.explain(images)
    chosen = fullest(run.decomposer, scenes)
    scene = scenes[chosen : chosen + 1]
    rows = vary(run.decomposer, scene)
    with staging_dir(out.parent) as draft:
        draw(run.decomposer, images[chosen], scene, rows).save(draft / out.name)
        commit(draft, out.parent)
    for row in rows:
        if row.obstacle:
            say(f"no {row.title}: this run cannot do it, for {row.obstacle}")
    say(f"{out}: {', '.join(row.title for row in rows if row.scenes)}")
