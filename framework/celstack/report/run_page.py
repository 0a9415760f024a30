"""The page of a run: what was learned, how well, examples, and how it came about."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor

from celstack.errors import CelstackError
from celstack.evaluation.score_metadata import percentages
from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Assembly
from celstack.report import gallery
from celstack.report import scores as figures
from celstack.report.editor import editor_assets, editor_data
from celstack.report.embed import embed
from celstack.report.line_charts import Curve, draw_curves, draw_shares
from celstack.report.run_info import read_facts
from celstack.report.templating import render
from celstack.report.training_log import History, Share, read_history
from celstack.runs.directory import BEST
from celstack.runs.examples import Example, find_examples
from celstack.runs.findings import MEANINGS
from celstack.scene import Scene

LIVE_EXAMPLES = 8
"""A page about a run that goes on shows few examples: it is made often."""


class State(NamedTuple):
    """Where a run stands: ``refresh`` is after how many seconds a page should look again."""

    text: str = ""
    refresh: int | None = None


class Page(NamedTuple):
    """A page, and sentences about what could not be shown on it."""

    text: str
    missing: list[str]


class Shown(NamedTuple):
    """Examples taken apart, and what an editor needs of them."""

    groups: list[gallery.Group]
    explained: gallery.Explained | None
    editor: dict[str, Any] | None


def make_page(
    folder: Path, assembly: Assembly, decomposer: Decomposer, state: State | None = None
) -> Page:
    """Make the page of a run from its folder and its model, as they are now.

    Without a state, the run is said to be as finished as its folder is. What is missing, such
    as examples whose images are elsewhere, is told on the page.
    """
    live = state is not None and state.refresh is not None
    history = read_history(folder / "log.jsonl")
    census = figures.read_census(folder)
    names = _names(decomposer, census)
    scores = figures.read_scores(folder, assembly.metrics)
    if state is None:
        state = State(
            "" if scores else f"The run is not finished: this is step {history.steps:,}."
        )
    missing: list[str] = []
    shown = Shown([], None, None)
    try:
        examples = find_examples(folder, assembly, LIVE_EXAMPLES if live else 32)
        percent = percentages(assembly.metrics, {m.name: 0.0 for m in assembly.metrics})
        texts = figures.spell_scores(folder, percent)
        batch_size = assembly.evaluation.batch_size
        explained = gallery.explain(decomposer, examples.images, batch_size)
        shown = Shown(
            gallery.show_examples(*examples, explained, names, texts),
            explained,
            None if live else _editor(decomposer, explained.scene, *examples, names),
        )
    except CelstackError as error:
        missing.append(f"There are no examples on this page, for {error}.")
    text = render(
        "page.html",
        facts=read_facts(folder, history),
        state=state,
        sprites=gallery.show_sprites(decomposer),
        names=names,
        best=embed(folder / BEST),
        usage=_usage(census, history.usage, decomposer.sprites.count),
        backgrounds=gallery.show_backgrounds(decomposer, shown.explained),
        scores=scores,
        matrix=figures.draw_matrix(census) if census else None,
        images=census.images if census else 0,
        split=assembly.evaluation.split,
        charts=_charts(history, names),
        checked=history.checked,
        health=[
            {**line._asdict(), "meaning": MEANINGS.get(line.kind)} for line in history.health
        ],
        groups=shown.groups,
        in_order=shown.explained is None or gallery.in_order(shown.explained.scene),
        missing=missing,
        editor=shown.editor,
        editor_assets=editor_assets() if shown.editor else None,
    )
    return Page(text, missing)


def _names(decomposer: Decomposer, census: figures.Census | None) -> list[str]:
    """Name every sprite, after its class where that is known."""
    known = census.names if census else []
    known = known or [None] * decomposer.sprites.count
    return [f"sprite {number}" if name is None else name for number, name in enumerate(known)]


def _usage(
    census: figures.Census | None, history: list[Share], sprites: int
) -> list[float | None]:
    """Return each sprite's share of all filled layers: of the evaluation, or of late."""
    if census and sum(census.usage):
        return [one / sum(census.usage) for one in census.usage]
    if history and len(history[-1].shares) == sprites:
        return list(history[-1].shares)
    return [None] * sprites


def _charts(history: History, names: list[str]) -> dict[str, Any]:
    loss = draw_curves(
        "Loss over steps",
        [Curve("loss", history.losses)],
        history.stages,
        history.reassigned,
    )
    usage = draw_shares("Usage of sprites over steps", history.usage, names, history.stages)
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
