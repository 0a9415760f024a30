"""The page of a sweep."""

import json

import pytest
from PIL import Image

from celstack.report.line_charts import RIGHT, TOP, WIDTH
from celstack.report.sweep_page import make_sweep_page
from celstack.report.sweep_plots import FLOOR, LEFT, axis_positions, draw_plot, round_numbers
from celstack.runs.finished import read_finished
from celstack.runs.sweep.grid import combine, read_grid
from celstack.runs.sweep.results import LOSS, SweepResults

HOSTILE = "<script>alert('1')</script>\"🦆"


@pytest.fixture
def results(fake_run):
    """Make results of runs with these losses, in the order of the grid."""

    def make(grid, losses, name="mine", failures=()):
        axes = read_grid(grid, [])
        runs = []
        for cell, loss in zip(combine(axes), losses, strict=True):
            folder = fake_run(loss=loss, name=name, metrics={"ari": 1 - loss})
            (folder / "sprites").mkdir()
            Image.new("RGBA", (4, 4), "red").save(folder / "sprites" / "00.png")
            runs.append((cell, read_finished(folder)))
        return SweepResults("my.toml", axes, runs, list(failures))

    return make


def plot_of(found, measure=LOSS):
    return draw_plot(found, found.swept[0], measure)


def test_more_is_to_the_right_and_less_loss_is_lower(results):
    plot = plot_of(results(["sprites.count=4,2,3"], [0.1, 0.9, 0.5]))

    spots = plot.lines[0].markers
    assert [tick.text for tick in plot.across] == ["2", "3", "4"]
    assert LEFT < spots[0].x < spots[1].x < spots[2].x < WIDTH - RIGHT
    assert TOP < spots[0].y < spots[1].y < spots[2].y < FLOOR
    assert spots[1].x == pytest.approx((spots[0].x + spots[2].x) / 2)


def test_the_loss_is_drawn_from_zero(results):
    plot = plot_of(results(["sprites.count=1,2"], [0.5, 0.4]))

    assert plot.up[0].text == "0"
    assert FLOOR - 15 < plot.up[0].at < FLOOR


def test_bars_reach_a_deviation_up_and_down(results):
    plot = plot_of(results(["sprites.count=1,2", "seed=0,1"], [0.2, 0.4, 0.1, 0.1]))

    first, second = plot.lines[0].markers
    assert first.y - first.high == pytest.approx(first.low - first.y, abs=0.2)
    assert first.high < first.y
    assert second.low == second.high == second.y
    assert first.title == "sprites.count = 1: 0.300 ± 0.141"


def test_the_elbow_is_marked_in_the_plot_of_the_loss_alone(results):
    found = results(["sprites.count=1,2,3"], [0.9, 0.1, 0.05])

    assert [marker.elbow for marker in plot_of(found).lines[0].markers] == [False, True, False]
    assert not any(marker.elbow for marker in plot_of(found, "ari").lines[0].markers)


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([1, 2, 5], ([0.0, 0.25, 1.0], False)),
        ([0, 1e-5, 1e-3, 1], ([0.125, 0.375, 0.625, 0.875], True)),
        (["a", "b"], ([0.25, 0.75], True)),
        ([True, False], ([0.25, 0.75], True)),
        ([1.0, float("inf")], ([0.25, 0.75], True)),
        ([7], ([0.5], False)),
    ],
)
def test_values_stand_where_they_are_unless_that_would_be_too_near(values, places):
    assert axis_positions(values) == places


@pytest.mark.parametrize(
    ("low", "high", "numbers"),
    [
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-1.0, 9.0, [0.0, 2.0, 4.0, 6.0, 8.0]),
        (99.5, 100.1, [99.6, 99.8, 100.0]),
    ],
)
def test_ticks_are_round_numbers_inside(low, high, numbers):
    assert round_numbers(low, high) == numbers


@pytest.mark.parametrize("losses", [[1.0, 1.0], [0.5, 0.5], [0.0, 0.0], [0.5, 0.499999]])
@pytest.mark.parametrize("measure", ["ari", LOSS])
def test_figures_that_hardly_differ_have_a_plot_too(results, losses, measure):
    plot = plot_of(results(["selector.sweeps=1,2"], losses), measure)

    assert all(TOP <= marker.y <= FLOOR for marker in plot.lines[0].markers)
    assert len(plot.up) >= 2
    assert all(len(tick.text) <= 6 for tick in plot.up)


def test_the_page_shows_plots_table_sprites_and_failures(results, parsed):
    cells = combine(read_grid(["sprites.count=9"], []))
    found = results(["sprites.count=1,2,3"], [0.9, 0.1, 0.05], failures=[(cells[0], "no room")])

    page = parsed(make_sweep_page(found))

    assert page.tags.count("svg") == 2
    assert page.tags.count("img") == 3
    for fact in (
        "3 of 4 runs finished",
        "sprites.count = 2",
        "Elbow of the loss",
        "no room",
    ):
        assert fact in page.text
    assert page.attributes.count(("circle", "class", "elbow")) == 1
    assert all(address.startswith(("#", "data:")) for address in page.addresses)


def test_a_run_with_a_page_is_linked_by_the_way_there(results, parsed):
    found = results(["seed=1"], [1.0], name="a <b>")
    folder = found.runs[0][1].folder
    (folder / "report.html").write_text("")

    page = parsed(make_sweep_page(found))

    assert f"a%20%3Cb%3E/{folder.name}/report.html" in page.addresses


def test_whatever_names_say_it_is_shown_and_not_obeyed(results, parsed):
    value = json.dumps(HOSTILE, ensure_ascii=False)
    cells = combine(read_grid([f"description={value}"], []))
    found = results(
        [f"description={value},b", f"dataset.use={value},c"],
        [0.1, 0.2, 0.3, 0.4],
        name=HOSTILE.replace("/", ""),
        failures=[(cells[0], HOSTILE)],
    )._replace(recipe=HOSTILE)

    page = make_sweep_page(found)

    assert "<script>alert" not in page
    assert parsed(page).handlers == []
    assert parsed(page).tags.count("script") == 1
    assert HOSTILE in parsed(page).text


def test_pictures_that_are_damaged_are_left_out(results, parsed):
    found = results(["seed=1"], [1.0])
    (found.runs[0][1].folder / "sprites" / "00.png").write_bytes(b"nothing")

    assert parsed(make_sweep_page(found)).tags.count("img") == 0
