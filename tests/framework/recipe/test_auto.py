"""What a recipe leaves to its images is chosen by the dataset, and by nobody else."""

import published
import pytest
from PIL import Image

from celstack.errors import CelstackError, RecipeError
from celstack.recipe.auto import fill_auto, find_auto
from celstack.recipe.load import Recipe, read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog
from celstack_kit.datasets.image_folder import ImageFolder
from celstack_kit.datasets.tetrominoes import Tetrominoes


def test_every_auto_is_found_by_its_path():
    table = {"a": {"count": "auto"}, "b": [{"count": "auto", "size": "auto"}, {"size": 3}]}

    assert find_auto(table) == [("a", "count"), ("b", 0, "count"), ("b", 0, "size")]


def test_suggestions_are_filled_in_by_path():
    table = {"a": {"count": "auto"}, "b": [{"count": "auto", "size": "auto"}]}

    filled = fill_auto(table, find_auto(table), {"a.count": 3, "b[0].size": 4, "c.size": 5})

    assert table == {"a": {"count": 3}, "b": [{"count": "auto", "size": 4}]}
    assert filled == {"a.count": 3, "b[0].size": 4}


def test_empty_brackets_stand_for_every_item():
    table = {"b": [{"n": "auto"}, {"n": 7}, {"n": "auto"}]}

    filled = fill_auto(table, find_auto(table), {"b[].n": 1, "b[2].n": 2})

    assert table == {"b": [{"n": 1}, {"n": 7}, {"n": 2}]}
    assert filled == {"b[0].n": 1, "b[2].n": 2}


def test_an_option_of_the_same_name_elsewhere_is_not_filled_in():
    """Backgrounds have a count, too, and folders of images suggest that of sprites alone."""
    with pytest.raises(RecipeError, match=r"backgrounds\.count: must be .*, not 'auto'"):
        resolve(images_recipe("backgrounds.count=auto"), Catalog())


def test_a_suggestion_without_a_path_is_a_mistake(monkeypatch):
    monkeypatch.setattr(ImageFolder, "suggest", lambda self: {"count": 3})

    with pytest.raises(RecipeError, match=r"dataset: suggests 'count'; .* as sprites\.count"):
        resolve(images_recipe(), Catalog())


def images_recipe(*overrides):
    root = published.pictures().as_posix()
    return read_recipe("images.toml", [f"dataset.root='{root}'", *overrides])


def test_a_folder_of_images_settles_its_recipe():
    resolved = resolve(images_recipe(), Catalog())

    table = resolved.as_table()
    # Four images of 30 x 20.
    assert table["dataset"]["size"] == [44, 64]
    assert table["sprites"]["size"] == [44, 64]
    assert table["sprites"]["count"] == 2
    assert table["stages"][0]["epochs"] == 60
    assert resolved.chosen["sprites.count"] == 2
    assert resolved.chosen["stages[0].epochs"] == 60


def test_what_is_said_is_not_chosen():
    resolved = resolve(images_recipe("sprites.count=5"), Catalog())

    assert resolved.as_table()["sprites"]["count"] == 5
    assert "sprites.count" not in resolved.chosen


def test_the_recipe_itself_stays_as_it_was():
    recipe = images_recipe()

    resolve(recipe, Catalog())

    assert recipe.table["sprites"]["count"] == "auto"


def test_auto_where_nobody_can_choose_is_a_mistake():
    with pytest.raises(RecipeError, match=r"sprites\.jitter: must be a number, not 'auto'"):
        resolve(images_recipe("sprites.jitter=auto"), Catalog())
    with pytest.raises(RecipeError, match=r"sprites\.count: must be an integer, not 'auto'"):
        resolve(read_recipe("smoke.toml", ["sprites.count=auto"]), Catalog())


def test_a_mistake_in_the_dataset_is_said_as_ever():
    with pytest.raises(RecipeError, match=r"dataset\.rot: image_folder takes root"):
        resolve(images_recipe("dataset.rot=3"), Catalog())


def test_a_recipe_without_a_dataset_is_said_to_have_none():
    with pytest.raises(RecipeError, match="dataset: is missing"):
        resolve(Recipe("x", "x.toml", {"sprites": {"count": "auto"}}), Catalog())


def test_a_folder_that_is_not_there_is_said():
    with pytest.raises(CelstackError, match="there is no folder"):
        resolve(read_recipe("images.toml", ["dataset.root=nowhere"]), Catalog())


def test_a_dataset_that_is_only_named_chooses_too(monkeypatch):
    monkeypatch.setattr(Tetrominoes, "suggest", lambda self: {"sprites.count": 3})
    table = {**read_recipe("smoke.toml").table, "dataset": "tetrominoes"}
    table["sprites"] = {**table["sprites"], "count": "auto"}

    resolved = resolve(Recipe("x", "x.toml", table), Catalog())

    assert resolved.chosen == {"sprites.count": 3}


def test_a_folder_called_auto_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    published.pictures(tmp_path / "auto")

    resolved = resolve(read_recipe("images.toml", ["dataset.root=auto"]), Catalog())

    assert resolved.as_table()["dataset"]["root"] == "auto"
    assert resolved.as_table()["sprites"]["count"] == 2


def test_where_nothing_can_be_chosen_all_other_mistakes_are_told_too():
    overrides = ["dataset.root=nowhere", "sprites.cont=3", "selector.stps=3"]

    with pytest.raises(RecipeError) as refused:
        resolve(read_recipe("images.toml", overrides), Catalog())

    places = [problem.place for problem in refused.value.problems]
    assert places == ["dataset", "sprites.cont", "selector.stps"]


def test_a_broken_image_is_not_asked_for_its_shape(tmp_path):
    Image.new("RGB", (90, 30)).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no image")

    assert ImageFolder(root=tmp_path).suggest()["dataset.size"] == [32, 64]


def test_a_dataset_that_fails_to_choose_is_told_in_a_line(monkeypatch):
    monkeypatch.setattr(ImageFolder, "suggest", lambda self: 1 / 0)

    with pytest.raises(RecipeError, match=r"dataset: .*division by zero"):
        resolve(images_recipe(), Catalog())


@pytest.mark.parametrize(
    ("count", "size", "suggested"),
    [
        (1, (50, 50), ([64, 64], 2, 60, 1)),
        (50, (90, 30), ([32, 64], 5, 60, 50)),
        (800, (30, 90), ([64, 32], 20, 5, 800)),
    ],
)
def test_images_suggest_their_shape_and_as_many_sprites_as_they_can_fill(
    tmp_path, count, size, suggested
):
    for number in range(count):
        Image.new("RGB", size).save(tmp_path / f"{number}.bmp")

    found = ImageFolder(root=tmp_path).suggest()

    asked = ("dataset.size", "sprites.count", "stages[].epochs", "evaluation.images")
    assert tuple(found[path] for path in asked) == suggested
    assert found["sprites.size"] == found["dataset.size"]
    sigma = round(min(found["sprites.size"]) / 6, 1)
    assert found["selector.window"] == found["sprites.mask_sigma"] == sigma
