import json

import pytest

from celstack.runs.comparison import as_markdown, compare
from celstack.runs.finished import read_finished


@pytest.fixture
def table(fake_run):
    """Compare runs made of these words, and return the cells of the only table."""

    def make(*runs, each=False):
        folders = [fake_run(**run) for run in runs]
        (comparison,) = compare([read_finished(folder) for folder in folders], each)
        return [comparison.heading(), *map(comparison.cells, comparison.rows)]

    return make


def test_one_run_is_one_row_without_a_deviation(table):
    assert table({"metrics": {"ari": 0.996, "mse": 0.0015}}) == [
        ["", "runs", "images", "ari (%)", "mse"],
        ["mine", "1", "64 of test", "99.6", "0.00150"],
    ]


def test_seeds_of_one_recipe_are_one_row(table):
    runs = [{"seed": seed, "metrics": {"ari": ari}} for seed, ari in enumerate([0.5, 0.7])]

    assert table(*runs)[1:] == [["mine", "2", "64 of test", "60.0 ± 14.1"]]


def test_each_seed_has_its_row_if_asked_for(table):
    runs = [{"seed": seed, "metrics": {"ari": ari}} for seed, ari in [(4, 0.5), (7, 0.7)]]

    assert [row[0] for row in table(*runs, each=True)[1:]] == [
        "mine",
        "mine, seed 4",
        "mine, seed 7",
    ]


def test_a_single_run_is_not_repeated_for_its_seed(table):
    assert len(table({}, each=True)) == 2


def test_the_unfiltered_figure_comes_first(table):
    runs = [
        {"seed": seed, "loss": loss, "metrics": {"ari": ari}}
        for seed, loss, ari in [(0, 1.0, 0.9), (1, 2.0, 0.3), (2, 1.0, 0.9)]
    ]

    assert table(*runs)[1:] == [
        ["mine", "3", "64 of test", "70.0 ± 34.6"],
        ["mine, without outliers", "2", "64 of test", "90.0 ± 0.0"],
    ]


def test_published_figures_follow_in_the_order_of_the_recipe(table):
    published = {"the paper": {"ari": 99.6, "miou": 84.0}, "others": {"ari": 90.0}}

    assert table({"published": published}, {"seed": 1, "published": published}) == [
        ["", "runs", "images", "ari (%)", "miou (%)"],
        ["mine", "2", "64 of test", "50.0 ± 0.0", ""],
        ["the paper", "published", "", "99.6", "84.0"],
        ["others", "published", "", "90.0", ""],
    ]


def test_figures_that_contradict_each_other_are_both_shown(table):
    rows = table(
        {"published": {"them": {"ari": 1.0}}},
        {"name": "other", "published": {"them": {"ari": 2.0}}},
    )

    assert [row[3] for row in rows if row[0] == "them"] == ["1.0", "2.0"]


def test_recipes_of_other_names_have_rows_of_their_own(table):
    rows = table({"name": "left"}, {"name": "right"})

    assert [row[0] for row in rows[1:]] == ["left", "right"]


def test_runs_of_one_name_that_differ_say_in_what(table):
    rows = table({"sprites": {"count": 3}}, {"sprites": {"count": 4, "size": [2, 2]}})

    assert [row[0] for row in rows[1:]] == [
        "mine (sprites.count = 3, no sprites.size[0], no sprites.size[1])",
        "mine (sprites.count = 4, sprites.size[0] = 2, sprites.size[1] = 2)",
    ]


def test_what_changes_no_figure_makes_no_difference(table):
    rows = table(
        {
            "training": {"workers": 0, "checkpoint_every": 1},
            "observers": [],
            "description": "a",
        },
        {"training": {"workers": 2, "checkpoint_every": 2}, "seed": 1, "published": {}},
    )

    assert [row[:2] for row in rows[1:]] == [["mine", "2"]]


def test_every_dataset_has_a_table(fake_run):
    folders = [fake_run(), fake_run(name="other", dataset={"use": "signs"})]

    comparisons = compare([read_finished(folder) for folder in folders])

    assert [comparison.title for comparison in comparisons] == ["shapes", "signs"]


def test_other_options_make_another_dataset(fake_run):
    datasets = [{"use": "shapes", "count": count} for count in (10, 20)]
    published = {"them": {"ari": 1.0}}
    folders = [
        fake_run(dataset=datasets[0]),
        fake_run(dataset=datasets[1], published=published),
    ]

    first, second = compare([read_finished(folder) for folder in folders])

    assert (first.title, second.title) == ("shapes (count = 10)", "shapes (count = 20)")
    assert [row.name for row in first.rows] == ["mine"]
    assert [row.name for row in second.rows] == ["mine", "them"]


def test_the_same_data_elsewhere_is_the_same(table):
    datasets = [{"use": "shapes", "root": root} for root in ("here", "there")]

    rows = table(*({"dataset": data, "files": ["shapes.zip"]} for data in datasets))

    assert [row[:2] for row in rows[1:]] == [["mine", "2"]]


def test_other_folders_of_images_are_other_data(fake_run):
    datasets = [{"use": "shapes", "root": root} for root in ("cats", "dogs")]

    comparisons = compare([read_finished(fake_run(dataset=data)) for data in datasets])

    titles = [comparison.title for comparison in comparisons]
    assert titles == ["shapes (root = 'cats')", "shapes (root = 'dogs')"]


def test_a_run_without_a_number_is_not_forgotten(table):
    runs = [{"seed": seed, "metrics": {"ari": ari}} for seed, ari in enumerate([0.5, None])]

    assert table(*runs)[1][3] == "50.0 (of 1)"
    assert table({"name": "none", "metrics": {"ari": None}})[1][3] == "-"


def notes(runs):
    (comparison,) = compare([read_finished(folder) for folder in runs])
    return comparison.notes


def test_notes_say_seeds_losses_and_outliers(fake_run):
    runs = [fake_run(seed=seed, loss=loss) for seed, loss in [(3, 1.0), (5, 2.0), (8, 1.0)]]

    assert notes(runs)[1] == (
        "mine: seeds 3, 5, 8; reconstruction losses 1, 2, 1; outliers: 5."
    )
    assert "more than 20% above the median" in notes(runs)[2]


def test_notes_say_that_there_are_no_outliers(fake_run):
    assert notes([fake_run(seed=0), fake_run(seed=1)])[1].endswith("outliers: none.")


def test_notes_say_that_outliers_cannot_be_told(fake_run):
    assert "no losses" in notes([fake_run(seed=0), fake_run(seed=1, loss=None)])[1]


def test_notes_say_why_a_metric_has_no_score(fake_run):
    folder = fake_run(seed=3)
    about = json.loads((folder / "evaluation.json").read_text())
    about["failed"] = {"mine": "it failed in update: ValueError"}
    (folder / "evaluation.json").write_text(json.dumps(about))

    assert notes([folder])[1] == "mine, seed 3: no mine: it failed in update: ValueError."


def test_notes_say_in_what_unit_figures_are(fake_run):
    (note,) = notes([fake_run()])

    assert "in percent" in note
    assert "fractions of 1" in note


def test_notes_say_that_published_figures_were_not_measured_here(fake_run):
    assert "not measured " in notes([fake_run(published={"them": {"ari": 1.0}})])[-1]


def test_markdown(fake_run):
    comparisons = compare([read_finished(fake_run())])

    assert as_markdown(comparisons).splitlines()[:5] == [
        "## shapes",
        "",
        "|  | runs | images | ari (%) |",
        "| --- | --- | --- | --- |",
        "| mine | 1 | 64 of test | 50.0 |",
    ]


def test_names_are_text_in_markdown(fake_run):
    odd = "a|b <script> `c`\n[d](e)"

    text = as_markdown(compare([read_finished(fake_run(published={odd: {"ari": 1.0}}))]))

    (line,) = [line for line in text.splitlines() if "script" in line]
    assert line == r"| a\|b \<script\> \`c\` \[d\](e) | published |  | 1.0 |"
