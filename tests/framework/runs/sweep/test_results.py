"""What a sweep found, in figures and tables."""

import pytest

from celstack.recipe.overrides import parse
from celstack.runs.finished import read_finished
from celstack.runs.sweep.grid import combine, read_grid
from celstack.runs.sweep.results import LOSS, SweepResults


@pytest.fixture
def results(fake_run):
    """Make results of runs with these losses and scores, in the order of the grid."""

    def make(grid, losses, scores=None, failures=()):
        axes = read_grid(grid, [])
        scores = scores or [0.5] * len(losses)
        runs = [
            (cell, read_finished(fake_run(loss=loss, metrics={"ari": score})))
            for cell, loss, score in zip(combine(axes), losses, scores, strict=False)
        ]
        return SweepResults("my.toml", axes, runs, list(failures))

    return make


def test_a_series_has_mean_and_deviation_over_seeds(results):
    found = results(["sprites.count=4,2", "seed=0,1"], [1.0, 3.0, 5.0, 7.0])

    (series,) = found.series(found.swept[0], LOSS)

    assert [(p.value.value, p.score.mean) for p in series.points] == [(2, 6.0), (4, 2.0)]
    assert [p.score.std for p in series.points] == pytest.approx([2**0.5] * 2)
    assert series.name == ""


def test_other_options_make_series_of_their_own(results):
    found = results(["sprites.count=1,2", "selector.sweeps=1,3"], [1.0, 2.0, 3.0, 4.0])

    against_count, against_sweeps = (found.series(axis, LOSS) for axis in found.swept)

    assert [one.name for one in against_count] == [
        "selector.sweeps = 1",
        "selector.sweeps = 3",
    ]
    means = [[p.score.mean for p in one.points] for one in against_count]
    assert means == [[1.0, 3.0], [2.0, 4.0]]
    assert [one.name for one in against_sweeps] == ["sprites.count = 1", "sprites.count = 2"]


def test_seeds_alone_are_what_figures_are_drawn_against(results):
    found = results(["seed=0,1"], [1.0, 3.0])

    assert [axis.path for axis in found.swept] == ["seed"]
    assert [row.scores[LOSS] for row in found.table().rows] == ["2.00 ± 1.41"]


def test_the_elbow_of_the_loss_against_the_number_of_sprites_is_told(results):
    found = results(["sprites.count=9,3,5,7"], [0.0, 1.0, 0.4, 0.01])

    assert found.elbows() == ["elbow of the loss: sprites.count = 7"]
    assert "Elbow of the loss: sprites.count = 7." in found.table().notes
    assert found.to_dict()["elbows"] == found.elbows()


def test_of_other_options_no_elbow_is_told(results):
    assert results(["selector.sweeps=1,2,3"], [1.0, 0.1, 0.0]).elbows() == []


def test_the_table_has_a_row_for_each_combination_in_order(results):
    found = results(["sprites.count=3,4", "seed=0,1"], [1.0] * 4, [0.25, 0.75, 1.0, 1.0])

    table = found.table()

    assert table.heading() == ["", "runs", "images", LOSS, "ari (%)"]
    assert table.cells(table.rows[0])[:2] == ["sprites.count = 3", "2"]
    assert table.rows[0].scores["ari"] == "50.0 ± 35.4"
    assert [row.name for row in table.rows] == ["sprites.count = 3", "sprites.count = 4"]


def test_a_run_that_failed_is_counted_and_told(results):
    cell = (parse("sprites.count=3", "--grid"), parse("seed=1", "--grid"))

    found = results(["sprites.count=3", "seed=0,1"], [1.0], failures=[(cell, "no images")])

    table = found.table()
    assert [row.runs for row in table.rows] == ["1 of 2"]
    assert table.notes[-1] == "Failed: sprites.count = 3, seed = 1: no images"
    assert found.to_dict()["failed"] == [
        {"options": {"sprites.count": 3, "seed": 1}, "reason": "no images"}
    ]


def test_a_metric_that_has_no_number_leaves_its_cell_empty(results):
    found = results(["seed=0,1"], [1.0, 1.0], [float("nan")] * 2)

    assert found.table().rows[0].scores.keys() == {LOSS}
