"""The page of a sweep: plots, table, sprites, and failed runs."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from celstack.report.embed import embed
from celstack.report.scores import score_table
from celstack.report.sweep_plots import Plot, draw_plot
from celstack.report.templating import render
from celstack.runs.finished import FinishedRun
from celstack.runs.statistics import ELBOW_RULE
from celstack.runs.sweep.grid import Cell, format_cell
from celstack.runs.sweep.results import SEED, SweepResults

MAX_PREVIEWS = 24
"""Limits the size of the page; further combinations are only counted."""


class RunPreview(NamedTuple):
    """Sprites and examples of a run."""

    title: str
    folder: str
    page: str
    """The relative URL of the run's own page; empty if there is none."""
    sprites: list[str]
    examples: str


class PlotSection(NamedTuple):
    """The plots of all measures against one option."""

    path: str
    plots: list[Plot]


def make_sweep_page(results: SweepResults) -> str:
    """Return the page of a sweep as HTML, to be stored in the folder of the sweep."""
    sections = []
    for axis in results.swept:
        drawn = [draw_plot(results, axis, measure) for measure in results.measures]
        sections.append(PlotSection(axis.path, [plot for plot in drawn if plot]))
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
        scores=score_table(results.table()),
        previews=[_preview(cell, run) for cell, run in pictured[:MAX_PREVIEWS]],
        left_out=len(pictured[MAX_PREVIEWS:]),
        runs=[
            (format_cell(cell), _page_url(run), run.folder.name) for cell, run in results.runs
        ],
        failures=[(format_cell(cell), reason) for cell, reason in results.failures],
    )


def first_of_each(results: SweepResults) -> list[tuple[Cell, FinishedRun]]:
    """Return the first of the runs that differ only in their seed."""
    found: dict[str, tuple[Cell, FinishedRun]] = {}
    for cell, run in results.runs:
        found.setdefault(format_cell(one for one in cell if one.path != SEED), (cell, run))
    return list(found.values())


def _preview(cell: Cell, run: FinishedRun) -> RunPreview:
    sprites = [embed(path) for path in sorted((run.folder / "sprites").glob("*.png"))]
    examples = embed(run.folder / "examples.png")
    kept = [sprite for sprite in sprites if sprite]
    return RunPreview(format_cell(cell), run.folder.name, _page_url(run), kept, examples)


def _page_url(run: FinishedRun) -> str:
    """Return the URL of a run's page relative to the page of the sweep."""
    if not (run.folder / "report.html").is_file():
        return ""
    return quote(f"{run.name}/{run.folder.name}/report.html")
