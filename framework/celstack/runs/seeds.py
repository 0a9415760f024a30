"""Several seeds of one recipe: which, and how they did all together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from celstack.errors import CelstackError
from celstack.files import to_json, write_atomic
from celstack.runs.comparison import as_markdown, compare
from celstack.runs.directory import now
from celstack.runs.finished import FinishedRun
from celstack.runs.statistics import OUTLIER_RULE, find_outliers, summarise

MOST = 1000
ENDINGS = ("-seeds.json", "-seeds.md")
"""What lies beside runs and sums them up."""


def parse_seeds(text: str) -> list[int]:
    """Read ``5`` as the seeds 0 to 4, and ``0,1,7`` as just these."""
    try:
        numbers = [int(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if "," not in text and max(numbers, default=0) > MOST:
        raise CelstackError(f"--seeds {text}: is too many runs; was --seed {text} meant?")
    seeds = numbers if "," in text else list(range(max(numbers, default=0)))
    if not seeds or len(set(seeds)) < len(seeds):
        raise CelstackError(
            f"--seeds {text}: say how many, as in 5, or which, each once, as in 0,1,7"
        )
    return seeds


def save_summary(runs: Sequence[FinishedRun], failures: dict[int, str]) -> Path:
    """Write what seeds did together beside their folders; return the table's path."""
    above = runs[0].folder.parent
    stem = moment = now()
    number = 1
    while (above / f"{stem}{ENDINGS[0]}").exists():
        number += 1
        stem = f"{moment}-{number}"
    write_atomic(above / f"{stem}{ENDINGS[0]}", to_json(summary(runs, failures)))
    table = above / f"{stem}{ENDINGS[1]}"
    write_atomic(table, as_markdown(compare(runs, each=True)))
    return table


def summary(runs: Sequence[FinishedRun], failures: dict[int, str]) -> dict[str, Any]:
    """Sum runs up; first all of them, then those that are no outliers."""
    left_out = find_outliers([run.loss for run in runs])
    kept = [run for index, run in enumerate(runs) if index not in left_out]
    return {
        "split": runs[0].split,
        "images": runs[0].images,
        "percent": sorted(runs[0].percent & runs[0].metrics.keys()),
        "all": _figures(runs),
        "without_outliers": _figures(kept),
        "outliers": [runs[index].seed for index in left_out],
        "rule": OUTLIER_RULE,
        "runs": [
            {
                "seed": run.seed,
                "folder": run.folder.name,
                "reconstruction_loss": run.loss,
                "metrics": run.metrics,
            }
            for run in runs
        ],
        "failed": [{"seed": seed, "reason": reason} for seed, reason in failures.items()],
    }


def _figures(runs: Sequence[FinishedRun]) -> dict[str, Any]:
    figures = {
        metric: summarise([run.metrics[metric] for run in runs]) for metric in runs[0].metrics
    }
    return {
        metric: figure and {"mean": figure.mean, "deviation": figure.deviation}
        for metric, figure in figures.items()
    }
