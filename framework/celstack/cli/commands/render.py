"""`celstack render`: render scene files with the sprites of a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("scenes", nargs="+", metavar="SCENE.json", help="scene files")
    parser.add_argument(
        "--out",
        metavar="WHERE",
        help="a PNG file, or a folder for several (default: beside each scene)",
    )


def main(arguments: argparse.Namespace) -> None:
    """Read and validate all scenes, then render them."""
    from celstack.runs.finished import check_run

    folder = Path(arguments.run)
    check_run(folder)
    pictures = choose_outputs([Path(scene) for scene in arguments.scenes], arguments.out)

    import torch

    from celstack.cli.output import print_line
    from celstack.evaluation.visualize import to_pil_image
    from celstack.export.scene_json import read_scene
    from celstack.files import commit, staging_dir
    from celstack.runs.open import open_run

    decomposer = open_run(folder).decomposer
    scenes = {path: read_scene(path, decomposer) for path in pictures}
    for path, picture in pictures.items():
        with staging_dir(picture.parent) as staging, torch.no_grad():
            image = decomposer.render(scenes[path]).image[0]
            to_pil_image(image).save(staging / picture.name, "png")
            commit(staging, picture.parent)
        print_line(str(picture))


def choose_outputs(scenes: Sequence[Path], out: str | None) -> dict[Path, Path]:
    """Return the output file of each scene file."""
    from celstack.data.images import distinct_names
    from celstack.errors import CelstackError

    missing = next((path for path in scenes if not path.is_file()), None)
    if missing is not None:
        raise CelstackError(f"{missing}: no such file")
    once = {path.resolve(): path for path in scenes}
    if out is None:
        same = {path: path.with_suffix(".png") for path in once.values()}
        if len(set(same.values())) < len(same):
            raise CelstackError(
                "two of the scene files differ only in their extension; use --out"
            )
        return same
    if len(once) == 1 and out.lower().endswith(".png"):
        return {path: Path(out) for path in once.values()}
    names = distinct_names({real: Path(path.name) for real, path in once.items()})
    return {
        path: Path(out) / name.parent / f"{name.name}.png"
        for path, name in zip(once.values(), names, strict=True)
    }
