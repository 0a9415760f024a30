"""Several runs in one page: scores, curves, what differs in their recipes, sprites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from celstack.errors import CelstackError
from celstack.report.embed import data_uri
from celstack.report.line_charts import Curve, colour_of, draw_curves
from celstack.report.run_info import Facts, read_facts
from celstack.report.scores import as_scores
from celstack.report.templating import render
from celstack.report.training_log import History, read_history
from celstack.runs.comparison import MEANING, compare, flatten
from celstack.runs.finished import FinishedRun, read_finished
from celstack.text import describe_error, format_value

UNTOLD = ("published", "description", "seed")
"""Of the recipes, what is said elsewhere on the page."""


class Compared(NamedTuple):
    """One of the runs."""

    label: str
    colour: str
    run: FinishedRun
    facts: Facts
    history: History
    sprites: list[str]


class Difference(NamedTuple):
    """An option that not all recipes agree on, and what each says; empty for nothing."""

    place: str
    values: list[str]


def make_comparison(folders: Sequence[Path]) -> str:
    """Make the page; all runs must be finished."""
    runs = [read_finished(folder) for folder in folders]
    compared = [
        _read(run, label, number)
        for number, (run, label) in enumerate(zip(runs, _labels(runs), strict=True), start=1)
    ]
    curves = [Curve(one.label, one.history.losses, one.colour) for one in compared]
    return render(
        "compare.html",
        runs=compared,
        tables=[(table.title, as_scores(table)) for table in compare(runs, each=True)],
        meaning=MEANING,
        loss=draw_curves("Loss over steps", curves),
        differences=find_differences(runs),
    )


def find_differences(runs: Sequence[FinishedRun]) -> list[Difference]:
    """List what not all recipes agree on."""
    leaves = [flatten({k: v for k, v in run.recipe.items() if k not in UNTOLD}) for run in runs]
    places = list(dict.fromkeys(place for one in leaves for place in one))
    table = [
        Difference(place, [format_value(one[place]) if place in one else "" for one in leaves])
        for place in places
    ]
    return [difference for difference in table if len(set(difference.values)) > 1]


def _read(run: FinishedRun, label: str, number: int) -> Compared:
    history = read_history(run.folder / "log.jsonl")
    pictures = sorted((run.folder / "sprites").glob("*.png"))
    sprites = [_embed(path) for path in pictures]
    facts = read_facts(run.folder, history)
    return Compared(label, colour_of(number), run, facts, history, sprites)


def _labels(runs: Sequence[FinishedRun]) -> list[str]:
    """Name runs so that no two have the same name, unless they are the same."""
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
    # Files that are damaged fail in many ways.
    except Exception as error:
        raise CelstackError(f"{path}: cannot be read: {describe_error(error)[:200]}") from error
