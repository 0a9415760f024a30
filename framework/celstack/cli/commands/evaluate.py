"""`celstack evaluate`: evaluate a run again, from its folder."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path

from celstack.cli.commands.run import add_overrides


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of a run")
    parser.add_argument("--split", help="evaluate on this split (default: the recipe's)")
    parser.add_argument(
        "--images",
        type=int,
        metavar="N",
        help="evaluate on N images (default: the recipe's number)",
    )
    parser.add_argument("--data", metavar="ROOT", help="the dataset's folder on this machine")
    add_overrides(parser)
    parser.add_argument("--device", default="auto", help="as of run-recipe (default: auto)")


def main(arguments: argparse.Namespace) -> None:
    """Evaluate, print scores and differences from metrics.json, and write a result file."""
    from celstack.errors import CelstackError
    from celstack.runs.finished import check_run

    folder = Path(arguments.run)
    check_run(folder)
    if arguments.images is not None and arguments.images < 1:
        raise CelstackError(f"--images {arguments.images}: must be at least 1")

    from celstack.cli.output import print_line, print_warning
    from celstack.data.availability import require_images
    from celstack.evaluation.metric_list import warn_of_failures
    from celstack.evaluation.score_metadata import image_scores, percentages
    from celstack.progress import WorkProgress
    from celstack.recipe.assembly import Evaluation
    from celstack.runs.directory import RunDirectory
    from celstack.runs.open import open_run
    from celstack.system import find_device
    from celstack.training.evaluate import score

    opened = open_run(folder, arguments.set, arguments.data)
    for name, reason in opened.left_out.items():
        print_warning(f"metric {name} is left out: {reason}")
    assembly = opened.assembly
    splits = assembly.dataset.splits
    if arguments.split not in (None, *splits):
        known = ", ".join(splits)
        raise CelstackError(
            f"--split {arguments.split}: {assembly.dataset.name} has the splits {known}"
        )
    evaluation = Evaluation(
        split=arguments.split or assembly.evaluation.split,
        images=arguments.images or assembly.evaluation.images,
        batch_size=assembly.evaluation.batch_size,
    )
    decomposer = opened.decomposer.to(find_device(arguments.device))
    require_images(assembly.dataset, {evaluation.split: evaluation.batch_size})
    count = min(evaluation.images, assembly.dataset.count(evaluation.split))
    print_line(
        f"{folder} after step {opened.step}, on {count} images of the split {evaluation.split}"
    )
    failures: dict[str, str] = {}
    with WorkProgress("evaluating images", count) as progress:
        scores = score(
            decomposer,
            assembly.dataset,
            assembly.metrics,
            evaluation,
            progress.advance,
            failures=failures,
        )
    warn_of_failures(failures, folder)
    same_settings = (
        evaluation == assembly.evaluation and not arguments.set and not arguments.data
    )
    print_scores(scores, read_stored_metrics(folder) if same_settings else {})
    if not scores and not failures:
        print_line("no metrics: the images lack the ground truth that they need")
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
        "failed": failures,
    }
    try:
        path = RunDirectory(folder).save_evaluation(settings, results)
    except OSError as error:
        raise CelstackError(f"{folder}: cannot write there: {error.strerror}") from error
    print_line(
        f"Written to {path}" + (", with the score of each image" if results["scores"] else "")
    )


def read_stored_metrics(folder: Path) -> Mapping[str, float]:
    """Return the metrics in metrics.json; none if the run is not finished."""
    from celstack.cli.output import print_line
    from celstack.runs.finished import read_finished

    if (folder / "metrics.json").is_file():
        return read_finished(folder).metrics
    print_line("the run is not finished: these are scores of its last checkpoint")
    return {}


def print_scores(scores: Mapping[str, float], stored: Mapping[str, float]) -> None:
    """Print scores, and where they differ from stored ones."""
    from celstack.cli.output import print_line

    for name, number in scores.items():
        line = f"{name:>14}  {number:.4f}"
        if name in stored and not scores_equal(number, stored[name]):
            line += f"  differs from metrics.json: {stored[name]:.4f}"
        print_line(line)
    for name in stored.keys() - scores.keys():
        print_line(f"{name:>14}  -  not measured now; metrics.json: {stored[name]:.4f}")
    same = [
        name for name in scores if name in stored and scores_equal(scores[name], stored[name])
    ]
    if same and len(same) == len(stored):
        print_line("same as in metrics.json")


def scores_equal(left: float, right: float) -> bool:
    """Return whether two scores are equal up to rounding, which differs between devices."""
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return math.isclose(left, right, rel_tol=1e-4, abs_tol=1e-6)
