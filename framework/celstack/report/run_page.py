"""The page of a run: sprites, scores, examples, scene editor, and training."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor

from celstack.errors import CelstackError
from celstack.evaluation.score_metadata import percentages
from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Assembly
from celstack.report import gallery
from celstack.report.editor import editor_assets, editor_data
from celstack.report.embed import embed
from celstack.report.line_charts import Curve, draw_curves, draw_shares
from celstack.report.run_info import read_run_info
from celstack.report.scores import (
    ScoreTable,
    StoredSpriteStats,
    class_matrix,
    format_image_scores,
    read_scores,
    read_sprite_stats,
)
from celstack.report.templating import render
from celstack.report.training_log import TrainingLog, UsageShares, read_training_log
from celstack.runs.directory import BEST_SPRITES
from celstack.runs.examples import MAX_DATASET_EXAMPLES, Example, find_examples
from celstack.runs.findings import MEANINGS
from celstack.runs.finished import read_finished
from celstack.scene import Scene

MAX_LIVE_EXAMPLES = 8
"""The page of a run in progress has few examples, because it is made often."""


class RunStatus(NamedTuple):
    """The status of a run; ``refresh`` is after how many seconds a page reloads itself."""

    text: str = ""
    refresh: int | None = None


class RunPage(NamedTuple):
    """The HTML of a page, and sentences about what is missing on it."""

    text: str
    missing: list[str]


class ExampleSection(NamedTuple):
    """Decomposed examples, and the values of the editor."""

    groups: list[gallery.ExampleGroup]
    explained: gallery.Explained | None
    editor: dict[str, Any] | None


def make_page(
    folder: Path, assembly: Assembly, decomposer: Decomposer, status: RunStatus | None = None
) -> RunPage:
    """Make the page of a run from its folder and its model, as they are now.

    Args:
        folder: The folder of the run.
        assembly: Its assembly.
        decomposer: Its model.
        status: The status of the run that is writing the page; by default, the folder says
            whether it is finished. Pages of runs that are not say when they were last active.

    Returns:
        The page. What is missing, such as examples whose images are not on this machine, is
        also named on the page.
    """
    live = status is not None and status.refresh is not None
    log = read_training_log(folder / "log.jsonl")
    stats = read_sprite_stats(folder)
    names = _names(decomposer, stats)
    scores = read_scores(folder, assembly.metrics)
    active = log.last_time if status is None else time.time()
    if status is None:
        status = RunStatus("" if scores else f"Not finished: this is step {log.steps:,}.")
    missing: list[str] = []
    section = ExampleSection([], None, None)
    try:
        examples = find_examples(
            folder, assembly, MAX_LIVE_EXAMPLES if live else MAX_DATASET_EXAMPLES
        )
        texts = format_image_scores(folder, _percent(folder, assembly, scores))
        batch_size = assembly.evaluation.batch_size
        explained = gallery.explain(decomposer, examples.images, batch_size)
        section = ExampleSection(
            gallery.show_examples(*examples, explained, names, texts),
            explained,
            None if live else _editor(decomposer, explained.scene, *examples, names),
        )
    except CelstackError as error:
        missing.append(f"No examples: {error}.")
    text = render(
        "page.html",
        info=read_run_info(folder, log),
        status=status,
        last_active=_format_time(active) if status.text else "",
        sprites=gallery.show_sprites(decomposer),
        names=names,
        best=embed(folder / BEST_SPRITES),
        usage=_usage(stats, log.usage, decomposer.sprites.count),
        backgrounds=gallery.show_backgrounds(decomposer, section.explained),
        scores=scores,
        matrix=class_matrix(stats) if stats else None,
        images=stats.images if stats else 0,
        split=assembly.evaluation.split,
        charts=_charts(log, names),
        checked=log.checked,
        health=[{**line._asdict(), "meaning": MEANINGS.get(line.kind)} for line in log.health],
        groups=section.groups,
        is_ordered=section.explained is None or gallery.is_ordered(section.explained.scene),
        missing=missing,
        editor=section.editor,
        editor_assets=editor_assets() if section.editor else None,
    )
    return RunPage(text, missing)


def _format_time(seconds: float | None) -> str:
    """Format a time of the log, in the local time zone; empty if there is none."""
    try:
        when = datetime.fromtimestamp(seconds).astimezone() if seconds is not None else None
    except (ValueError, OverflowError, OSError):  # a damaged log
        return ""
    return when.strftime("%Y-%m-%d %H:%M:%S %Z") if when else ""


def _names(decomposer: Decomposer, stats: StoredSpriteStats | None) -> list[str]:
    """Return a name for every sprite: its class if known, else its number."""
    known = stats.names if stats else []
    known = known or [None] * decomposer.sprites.count
    return [f"sprite {number}" if name is None else name for number, name in enumerate(known)]


def _percent(folder: Path, assembly: Assembly, scores: ScoreTable | None) -> Iterable[str]:
    """Return the metrics in percent: those of the run, some of which may be missing now."""
    if scores:
        return read_finished(folder).percent
    return percentages(assembly.metrics, {metric.name: 0.0 for metric in assembly.metrics})


def _usage(
    stats: StoredSpriteStats | None, log: list[UsageShares], sprites: int
) -> list[float | None]:
    """Return each sprite's share of filled layers, in the evaluation or in recent steps."""
    if stats and sum(stats.usage):
        return [one / sum(stats.usage) for one in stats.usage]
    if log and len(log[-1].shares) == sprites:
        return list(log[-1].shares)
    return [None] * sprites


def _charts(log: TrainingLog, names: list[str]) -> dict[str, Any]:
    loss = draw_curves(
        "Loss over steps",
        [Curve("loss", log.losses)],
        log.stages,
        log.reassigned,
    )
    usage = draw_shares("Sprite usage over steps", log.usage, names, log.stages)
    return {"loss": loss, "usage": usage}


def _editor(
    decomposer: Decomposer,
    scene: Scene,
    examples: list[Example],
    images: Float[Tensor, "B C H W"],
    sprite_names: list[str],
) -> dict[str, Any] | None:
    names = [f"{example.number} ({example.kind})" for example in examples]
    return editor_data(decomposer, scene, images, names, sprite_names)
