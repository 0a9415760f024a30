from celstack.runs.recipe_diff import (
    MAY_CHANGE_ON_RESUME,
    SHOWN_ELSEWHERE,
    VARY_WITHIN_EXPERIMENT,
    RecipeDifference,
    flatten,
    recipe_differences,
    without,
)

RECIPE = {"seed": 1, "dataset": {"use": "a", "root": "x"}, "stages": [{"steps": 2}]}


def test_differences_are_found_by_their_paths():
    other = {"seed": 1, "dataset": {"use": "b"}, "stages": [{"steps": 3}]}

    assert list(recipe_differences(RECIPE, other)) == [
        RecipeDifference("dataset.use", "a", "b"),
        RecipeDifference("dataset.root", "x", None),
        RecipeDifference("stages[0].steps", 2, 3),
    ]


def test_ignored_options_do_not_differ():
    other = {**RECIPE, "dataset": {"use": "a", "root": "y"}}

    assert not list(recipe_differences(RECIPE, other, MAY_CHANGE_ON_RESUME))


def test_options_are_removed_by_their_paths():
    assert without(RECIPE, {"seed", "dataset.root"}) == {
        "dataset": {"use": "a"},
        "stages": [{"steps": 2}],
    }
    assert RECIPE["dataset"]["root"] == "x"


def test_leaves_have_paths():
    leaves = {"seed": 1, "dataset.use": "a", "dataset.root": "x", "stages[0].steps": 2}

    assert flatten(RECIPE) == leaves


def test_what_does_not_matter_depends_on_the_question():
    assert "seed" not in MAY_CHANGE_ON_RESUME
    assert "seed" in VARY_WITHIN_EXPERIMENT & SHOWN_ELSEWHERE
    assert {"metrics", "evaluation"} <= MAY_CHANGE_ON_RESUME - VARY_WITHIN_EXPERIMENT
    assert "training.workers" in MAY_CHANGE_ON_RESUME & VARY_WITHIN_EXPERIMENT
    assert "training.workers" not in SHOWN_ELSEWHERE
