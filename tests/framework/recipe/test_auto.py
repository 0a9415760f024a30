"""What a recipe leaves to its images is chosen by the dataset, and by nobody else."""

import published
import pytest
from PIL import Image

from celstack.errors import CelstackError, RecipeError
from celstack.recipe.auto import settle, unsettled
from celstack.recipe.load import Recipe, read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog
from celstack_kit.datasets.image_folder import ImageFolder
from celstack_kit.datasets.tetrominoes import Tetrominoes


def test_every_auto_is_found_by_its_option():
    table = {"a": {"count": "auto"}, "b": [{"count": "auto", "size": "auto"}, {"size": 3}]}

    assert unsettled(table) == {
        "count": [("a", "count"), ("b", 0, "count")],
        "size": [("b", 0, "size")],
    }


def test_what_is_chosen_is_put_in_its_places_and_told_by_them():
    table = {"a": {"count": "auto"}, "b": [{"count": "auto", "size": "auto"}]}

    settled = settle(table, unsettled(table), {"count": 3, "other": 4})

    assert table == {"a": {"count": 3}, "b": [{"count": 3, "size": "auto"}]}
    assert settled == {"a.count": 3, "b[0].count": 3}


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
    monkeypatch.setattr(Tetrominoes, "suggest", lambda self: {"count": 3})
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

    assert ImageFolder(root=tmp_path).suggest()["size"] == [32, 64]


def test_a_dataset_that_fails_to_choose_is_told_in_a_line(monkeypatch):
    monkeypatch.setattr(ImageFolder, "suggest", lambda self: 1 / 0)

    with pytest.raises(RecipeError, match=r"dataset: .*division by zero"):
        resolve(images_recipe(), Catalog())


@pytest.mark.parametrize(
    ("count", "size", "suggested"),
    [
        (1, (50, 50), {"size": [64, 64], "count": 2, "epochs": 60, "images": 1}),
        (50, (90, 30), {"size": [32, 64], "count": 5, "epochs": 60, "images": 50}),
        (800, (30, 90), {"size": [64, 32], "count": 20, "epochs": 5, "images": 800}),
    ],
)
def test_images_suggest_their_shape_and_as_many_sprites_as_they_can_fill(
    tmp_path, count, size, suggested
):
    for number in range(count):
        Image.new("RGB", size).save(tmp_path / f"{number}.bmp")

    found = ImageFolder(root=tmp_path).suggest()

    assert {key: found[key] for key in suggested} == suggested
    assert found["window"] == found["mask_sigma"] == round(min(suggested["size"]) / 6, 1)
