"""A sweep in one page: figures against what varies, the table, sprites, what failed."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from celstack.report.embed import embed
from celstack.report.scores import as_scores
from celstack.report.sweep_plots import Plot, draw_plot
from celstack.report.templating import render
from celstack.runs.comparison import MEANING
from celstack.runs.finished import FinishedRun
from celstack.runs.statistics import ELBOW_RULE
from celstack.runs.sweep.grid import Cell, spell
from celstack.runs.sweep.results import SEED, Results

MOST_PICTURES = 24
"""A page with pictures of more combinations would be for no eye, and large."""


class Shown(NamedTuple):
    """A run as the page shows it."""

    title: str
    folder: str
    page: str
    """Where its own page is, as an address; empty if there is none."""
    sprites: list[str]
    examples: str


class Section(NamedTuple):
    """All that was measured, against one option."""

    path: str
    plots: list[Plot]


def make_sweep_page(results: Results) -> str:
    """Make the page of a sweep, to lie in the folder that has its runs below it."""
    sections = []
    for axis in results.swept:
        drawn = [draw_plot(results, axis, measure) for measure in results.measures]
        sections.append(Section(axis.path, [plot for plot in drawn if plot]))
    pictured = first_of_each(results)
    return render(
        "sweep.html",
        recipe=results.recipe,
        axes=results.axes,
        count=len(results.runs) + len(results.failures),
        finished=len(results.runs),
        averaged=any(axis.path == SEED and len(axis.values) > 1 for axis in results.axes),
        sections=sections,
        elbows=results.elbows(),
        rule=ELBOW_RULE,
        scores=as_scores(results.table()),
        meaning=MEANING,
        shown=[_show(cell, run) for cell, run in pictured[:MOST_PICTURES]],
        left_out=len(pictured[MOST_PICTURES:]),
        runs=[(spell(cell), _address(run), run.folder.name) for cell, run in results.runs],
        failures=[(spell(cell), reason) for cell, reason in results.failures],
    )


def first_of_each(results: Results) -> list[tuple[Cell, FinishedRun]]:
    """Return, of runs that differ in their seed alone, the first."""
    found: dict[str, tuple[Cell, FinishedRun]] = {}
    for cell, run in results.runs:
        found.setdefault(spell(one for one in cell if one.path != SEED), (cell, run))
    return list(found.values())


def _show(cell: Cell, run: FinishedRun) -> Shown:
    sprites = [embed(path) for path in sorted((run.folder / "sprites").glob("*.png"))]
    examples = embed(run.folder / "examples.png")
    kept = [sprite for sprite in sprites if sprite]
    return Shown(spell(cell), run.folder.name, _address(run), kept, examples)


def _address(run: FinishedRun) -> str:
    """Return the way from a sweep's page to that of one of its runs."""
    if not (run.folder / "report.html").is_file():
        return ""
    return quote(f"{run.name}/{run.folder.name}/report.html")
