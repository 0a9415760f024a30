"""The page that compares runs: scores, curves, differences of recipes, sprites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from celstack.errors import CelstackError
from celstack.report.embed import data_uri
from celstack.report.line_charts import Curve, draw_curves, label_color
from celstack.report.run_info import RunInfo, read_run_info
from celstack.report.scores import score_table
from celstack.report.templating import render
from celstack.report.training_log import TrainingLog, read_training_log
from celstack.runs.comparison import SCORE_FORMAT, compare
from celstack.runs.finished import FinishedRun, read_finished
from celstack.runs.recipe_diff import SHOWN_ELSEWHERE, flatten, without
from celstack.text import describe_error, format_value


class ComparedRun(NamedTuple):
    """One of the runs."""

    label: str
    color: str
    run: FinishedRun
    info: RunInfo
    log: TrainingLog
    sprites: list[str]


class OptionValues(NamedTuple):
    """An option that differs, and its value in each recipe; empty if a recipe has none."""

    path: str
    values: list[str]


def make_comparison(folders: Sequence[Path]) -> str:
    """Return the page as HTML; all runs must be finished."""
    runs = [read_finished(folder) for folder in folders]
    compared = [
        _read(run, label, number)
        for number, (run, label) in enumerate(zip(runs, _labels(runs), strict=True), start=1)
    ]
    curves = [Curve(one.label, one.log.losses, one.color) for one in compared]
    return render(
        "compare.html",
        runs=compared,
        tables=[(table.title, score_table(table)) for table in compare(runs, each=True)],
        score_format=SCORE_FORMAT,
        loss=draw_curves("Loss over steps", curves),
        differences=find_differences(runs),
    )


def find_differences(runs: Sequence[FinishedRun]) -> list[OptionValues]:
    """List the options that are not the same in all recipes."""
    leaves = [flatten(without(run.recipe, SHOWN_ELSEWHERE)) for run in runs]
    paths = list(dict.fromkeys(path for one in leaves for path in one))
    table = [
        OptionValues(path, [format_value(one[path]) if path in one else "" for one in leaves])
        for path in paths
    ]
    return [difference for difference in table if len(set(difference.values)) > 1]


def _read(run: FinishedRun, label: str, number: int) -> ComparedRun:
    log = read_training_log(run.folder / "log.jsonl")
    pictures = sorted((run.folder / "sprites").glob("*.png"))
    sprites = [_embed(path) for path in pictures]
    info = read_run_info(run.folder, log)
    return ComparedRun(label, label_color(number), run, info, log, sprites)


def _labels(runs: Sequence[FinishedRun]) -> list[str]:
    """Return a label for each run; only the same run has the same label."""
    short = [f"{run.name}, seed {run.seed}" for run in runs]
    count = Counter(short)
    return [
        label if count[label] == 1 else f"{label}, {run.folder.resolve().name}"
        for label, run in zip(short, runs, strict=True)
    ]


def _embed(path: Path) -> str:
    try:
        with Image.open(path, formats=["PNG"]) as picture:
            return data_uri(picture)
    # Damaged files raise errors of many types.
    except Exception as error:
        raise CelstackError(f"{path}: cannot be read: {describe_error(error)[:200]}") from error
