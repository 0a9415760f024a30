"""Runs of one recipe with several seeds, and the summary of their scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from celstack.errors import CelstackError
from celstack.files import to_json, write_atomic
from celstack.runs.comparison import as_markdown, compare
from celstack.runs.directory import timestamp
from celstack.runs.finished import FinishedRun
from celstack.runs.statistics import OUTLIER_RULE, find_outliers, mean_std
from celstack.text import printable

MAX_SEEDS = 1000
SUMMARY_SUFFIXES = ("-seeds.json", "-seeds.md")
"""How the names of summaries end, which are stored beside the folders of runs."""


def parse_seeds(text: str) -> list[int]:
    """Parse ``--seeds``: ``5`` means the seeds 0 to 4, and ``0,1,7`` exactly these."""
    try:
        numbers = [int(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if "," not in text and max(numbers, default=0) > MAX_SEEDS:
        raise CelstackError(f"--seeds {text}: too many runs; did you mean --seed {text}?")
    seeds = numbers if "," in text else list(range(max(numbers, default=0)))
    if not seeds or len(set(seeds)) < len(seeds):
        raise CelstackError(
            f"--seeds {printable(text)}: expected a number of seeds, such as 5, or distinct "
            "seeds, such as 0,1,7"
        )
    return seeds


def save_summary(runs: Sequence[FinishedRun], failures: dict[int, str]) -> Path:
    """Write a summary beside the folders of runs; return the path of its table."""
    parent = runs[0].folder.parent
    stem = start = timestamp()
    number = 1
    while (parent / f"{stem}{SUMMARY_SUFFIXES[0]}").exists():
        number += 1
        stem = f"{start}-{number}"
    write_atomic(parent / f"{stem}{SUMMARY_SUFFIXES[0]}", to_json(summary(runs, failures)))
    table = parent / f"{stem}{SUMMARY_SUFFIXES[1]}"
    write_atomic(table, as_markdown(compare(runs, each=True)))
    return table


def summary(runs: Sequence[FinishedRun], failures: dict[int, str]) -> dict[str, Any]:
    """Return the scores of all runs together, and of those that are not outliers."""
    left_out = find_outliers([run.loss for run in runs])
    kept = [run for index, run in enumerate(runs) if index not in left_out]
    return {
        "split": runs[0].split,
        "images": runs[0].images,
        "percent": sorted(runs[0].percent & runs[0].metrics.keys()),
        "all": _mean_scores(runs),
        "without_outliers": _mean_scores(kept),
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


def _mean_scores(runs: Sequence[FinishedRun]) -> dict[str, Any]:
    scores = {
        metric: mean_std([run.metrics[metric] for run in runs]) for metric in runs[0].metrics
    }
    return {
        metric: score and {"mean": score.mean, "deviation": score.std}
        for metric, score in scores.items()
    }
