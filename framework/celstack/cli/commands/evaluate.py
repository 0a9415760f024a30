"""`celstack evaluate`: score a run again, from its folder alone."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path

from celstack.cli.commands.run import add_overrides


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("run", metavar="RUN", help="the folder of a run")
    parser.add_argument("--split", help="judge on this split (that of the recipe)")
    parser.add_argument(
        "--images", type=int, metavar="N", help="judge on so many images (as the recipe says)"
    )
    parser.add_argument("--data", metavar="ROOT", help="look for the dataset here")
    add_overrides(parser)
    parser.add_argument("--device", default="auto", help="as for run-recipe (auto)")


def main(arguments: argparse.Namespace) -> None:
    """Score, print, say what differs from the end of the run, and keep the result."""
    from celstack.errors import CelstackError
    from celstack.runs.finished import check_run

    folder = Path(arguments.run)
    check_run(folder)
    if arguments.images is not None and arguments.images < 1:
        raise CelstackError(f"--images {arguments.images}: must be at least 1")

    from celstack.cli.output import say
    from celstack.counting import counting
    from celstack.evaluation.score_metadata import image_scores, percentages
    from celstack.recipe.assembly import Evaluation
    from celstack.runs.directory import RunDirectory
    from celstack.runs.open import open_run
    from celstack.system import find_device
    from celstack.training.evaluate import score

    opened = open_run(folder, arguments.set, arguments.data)
    assembly = opened.assembly
    splits = assembly.dataset.splits
    if arguments.split not in (None, *splits):
        known = ", ".join(splits)
        raise CelstackError(
            f"--split {arguments.split}: {assembly.dataset.name} has only the splits {known}"
        )
    evaluation = Evaluation(
        split=arguments.split or assembly.evaluation.split,
        images=arguments.images or assembly.evaluation.images,
        batch_size=assembly.evaluation.batch_size,
    )
    decomposer = opened.decomposer.to(find_device(arguments.device))
    count = min(evaluation.images, assembly.dataset.count(evaluation.split))
    say(f"{folder} after step {opened.step}, on {count} images of the split {evaluation.split}")
    with counting("scoring", "scored", count) as watch:
        scores = score(decomposer, assembly.dataset, assembly.metrics, evaluation, watch)
    as_it_was = evaluation == assembly.evaluation and not arguments.set and not arguments.data
    tell(scores, stored(folder) if as_it_was else {})
    settings = {
        "step": opened.step,
        "split": evaluation.split,
        "images": count,
        "data": arguments.data,
        "set": arguments.set,
    }
    results = {
        "percent": percentages(assembly.metrics, scores),
        "metrics": scores,
        "scores": image_scores(assembly.metrics, scores),
    }
    try:
        path = RunDirectory(folder).save_evaluation(settings, results)
    except OSError as error:
        raise CelstackError(f"{folder}: cannot write there: {error.strerror}") from error
    say(f"written to {path}" + (", with the score of each image" if results["scores"] else ""))


def stored(folder: Path) -> Mapping[str, float]:
    """Return the metrics of the end of the run; none if it has not come to its end."""
    from celstack.cli.output import say
    from celstack.runs.finished import read_finished

    if (folder / "metrics.json").is_file():
        return read_finished(folder).metrics
    say("the run is not finished: this is its last checkpoint")
    return {}


def tell(scores: Mapping[str, float], stored: Mapping[str, float]) -> None:
    """Print scores as they are stored, and where they are not what they were."""
    from celstack.cli.output import say

    for name, number in scores.items():
        said = f"{name:>14}  {number:.4f}"
        if name in stored and not alike(number, stored[name]):
            said += f"  differs from metrics.json, which has {stored[name]:.4f}"
        say(said)
    for name in stored.keys() - scores.keys():
        say(f"{name:>14}  -  is in metrics.json with {stored[name]:.4f}, but not measured now")
    same = [name for name in scores if name in stored and alike(scores[name], stored[name])]
    if same and len(same) == len(stored):
        say("the same as in metrics.json")
    if not scores:
        say("no metric could be measured: the images lack the ground truth that they need")


def alike(left: float, right: float) -> bool:
    """Tell whether two scores are the same but for rounding, which devices do differently."""
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return math.isclose(left, right, rel_tol=1e-4, abs_tol=1e-6)
