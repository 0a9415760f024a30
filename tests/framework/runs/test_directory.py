import json
import math
import os
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from celstack.errors import CelstackError
from celstack.files import write_atomic
from celstack.recipe.assembly import Assembly, Evaluation, Stage
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog
from celstack.runs.directory import RunDirectory
from celstack.runs.finished import read_recipe_json
from celstack.runs.results import collect_results
from celstack.system import environment
from celstack.testing.model import PlainSelector
from celstack.testing.parts import (
    PlainCompositor,
    PlainDataset,
    PlainMetric,
    PlainPredictor,
    PlainPrototype,
)


@pytest.fixture
def directory(tmp_path):
    """A run directory that is closed in the end."""
    directory = RunDirectory.create(tmp_path, "mine", seed=3)
    yield directory
    directory.close()


@pytest.fixture
def model():
    """An assembly of plain parts, and its model."""
    assembly = Assembly(
        dataset=PlainDataset(),
        sprites=PlainPrototype(),
        compositor=PlainCompositor(),
        selector=PlainSelector(),
        predictor=PlainPredictor(),
        stages=[Stage(steps=1)],
        evaluation=Evaluation(images=8),
    )
    decomposer = assembly.decomposer()
    decomposer.prepare(assembly.dataset.read("train", range(4)).images)
    return SimpleNamespace(assembly=assembly, decomposer=decomposer)


def test_a_folder_is_called_by_recipe_time_and_seed(directory, tmp_path):
    recipe, run = directory.folder.relative_to(tmp_path).parts

    assert recipe == "mine"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-\d\d\.\d\d\.\d\d-seed3", run)


def test_runs_of_the_same_second_have_folders_of_their_own(tmp_path):
    folders = {RunDirectory.create(tmp_path, "mine", seed=0).folder for _ in range(5)}

    assert len(folders) == 5
    assert all(folder.is_dir() and not any(folder.iterdir()) for folder in folders)


def test_a_place_that_is_a_file_is_refused(tmp_path):
    taken = tmp_path / "runs"
    taken.write_text("")

    with pytest.raises(CelstackError) as refused:
        RunDirectory.create(taken, "mine", seed=0)

    assert str(refused.value).startswith(f"--out {taken}: cannot write there: ")


def test_the_recipe_is_saved_in_full_and_can_be_read_again(directory, small, catalog):
    resolved = resolve(read_recipe(small), catalog)

    directory.save_recipe(resolved)

    saved = (directory.folder / "resolved.toml").read_text("utf-8")
    assert tomllib.loads(saved) == resolved.as_table()
    again = resolve(read_recipe(str(directory.folder / "resolved.toml")), catalog)
    assert again.as_table() == resolved.as_table()


def test_the_recipe_is_saved_as_it_was_written_too(directory, write, small, catalog):
    text = f'# mine\nextends = "{Path(small).name}"\n\nseed   = 3\n'
    path = write(text, "written.toml")

    directory.save_recipe(resolve(read_recipe(path, ["seed=4"]), catalog))

    assert (directory.folder / "recipe.toml").read_text("utf-8") == text


def test_the_recipe_of_a_run_is_known_as_json(directory, small, catalog):
    assert read_recipe_json(directory.folder) == ""

    resolved = resolve(read_recipe(small), catalog)
    directory.save_recipe(resolved)

    assert json.loads(read_recipe_json(directory.folder)) == resolved.as_table()


def test_the_environment_is_saved(directory, small, catalog):
    resolved = resolve(read_recipe(small), catalog)
    directory.save_recipe(resolved)

    found = json.loads((directory.folder / "environment.json").read_text())
    assert found == environment(resolved.packages)


def test_the_environment_names_the_packages_of_all_plugins(directory, small, plugin):
    source = """
from celstack import hookimpl
from celstack.testing import PlainEncoder

class Mine(PlainEncoder): ...

@hookimpl
def celstack_encoders():
    return {"mine": Mine}
"""
    entry = plugin("encoder-mine", source, package="acme-parts", version="0.3")
    catalog = Catalog([*(known.entry for known in Catalog().plugins), entry])
    directory.save_recipe(resolve(read_recipe(small, ["predictor.encoder='mine'"]), catalog))

    found = json.loads((directory.folder / "environment.json").read_text())
    assert found["packages"]["acme-parts"] == "0.3"
    assert found["plugins"] == {
        "compositor-ordered": "celstack",
        "dataset-tetrominoes": "celstack",
        "encoder-mine": "acme-parts",
        "metric-mse": "celstack",
        "predictor-network": "celstack",
        "prototype-pixels": "celstack",
        "selector-greedy": "celstack",
        "transform-color": "celstack",
        "transform-position": "celstack",
    }


def test_the_environment_tells_the_version_of_torch():
    # The distribution's version has no build in it, as 2.9.0+cpu has.
    assert torch.__version__.startswith(environment()["packages"]["torch"].split("+")[0])


def test_every_step_is_a_line_of_the_log(directory):
    directory.log(step=1, stage="only", loss=0.75)
    directory.log(step=2, stage="only", loss=0.5)

    # Read before the log is closed: a run can be watched.
    lines = (directory.folder / "log.jsonl").read_text().splitlines()
    first, second = (json.loads(text) for text in lines)
    assert first == {"step": 1, "stage": "only", "loss": 0.75}
    assert second == {"step": 2, "stage": "only", "loss": 0.5}


def test_a_closed_log_goes_on_where_it_was(directory):
    directory.log(step=1)
    directory.close()

    directory.log(step=2)

    lines = (directory.folder / "log.jsonl").read_text().splitlines()
    assert [json.loads(text)["step"] for text in lines] == [1, 2]


def test_closing_twice_is_no_mistake(directory):
    directory.close()
    directory.close()


def saved(directory):
    """Return the checkpoint of a folder."""
    return torch.load(directory.folder / "checkpoint.pt", weights_only=True)


def test_a_checkpoint_can_be_read_without_running_anything(directory):
    directory.save_checkpoint({"step": 7, "weights": torch.tensor([0.5])})

    assert saved(directory)["step"] == 7
    assert torch.equal(saved(directory)["weights"], torch.tensor([0.5]))


def test_a_newer_checkpoint_takes_the_place_of_the_old(directory):
    for step in (1, 2):
        directory.save_checkpoint({"step": step})

    assert [path.name for path in directory.folder.iterdir()] == ["checkpoint.pt"]
    assert saved(directory)["step"] == 2


def test_a_checkpoint_is_on_the_disk_before_it_takes_the_place_of_the_old(
    directory, monkeypatch
):
    story = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: (story.append("fsync"), fsync(file)))
    monkeypatch.setattr(
        Path, "replace", lambda *paths: (story.append("replace"), replace(*paths))
    )

    directory.save_checkpoint({"step": 1})

    assert story == ["fsync", "replace"]


def test_a_disk_that_is_full_leaves_the_old_checkpoint_whole_and_no_half(
    directory, monkeypatch
):
    directory.save_checkpoint({"step": 1})

    def fail(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        directory.save_checkpoint({"step": 2})

    assert saved(directory)["step"] == 1
    assert [path.name for path in directory.folder.iterdir()] == ["checkpoint.pt"]


def test_a_checkpoint_remembers_how_long_the_log_was(directory):
    directory.log(step=1)
    directory.save_checkpoint({"step": 1})
    directory.log(step=2)

    directory.truncate_log(saved(directory)["log"])
    directory.log(step=3)

    lines = (directory.folder / "log.jsonl").read_text().splitlines()
    assert [json.loads(text)["step"] for text in lines] == [1, 3]


def test_a_log_that_is_shorter_than_it_was_is_left_alone(directory):
    directory.log(step=1)

    directory.truncate_log(1000)

    assert (directory.folder / "log.jsonl").read_text() == '{"step": 1}\n'


def test_no_log_needs_no_cut(directory):
    directory.truncate_log(0)

    assert not any(directory.folder.iterdir())


def test_a_folder_that_is_held_is_not_given_to_another(directory):
    other = RunDirectory(directory.folder)

    with directory.locked(), pytest.raises(CelstackError) as refused, other.locked():
        pytest.fail("held twice")

    assert str(refused.value) == (
        f"{directory.folder}: this run is in use by another process; wait for it to finish, "
        "or stop it first"
    )


def test_a_folder_that_was_held_is_free_again(directory):
    with directory.locked():
        pass
    with RunDirectory(directory.folder).locked():
        pass


def test_results_are_scores_sprites_and_examples(directory, model):
    directory.save_results(collect_results(model.decomposer, model.assembly, {"mse": 0.5}))

    assert json.loads((directory.folder / "metrics.json").read_text()) == {"mse": 0.5}
    files = {path.relative_to(directory.folder).as_posix() for path in _files(directory)}
    sprites = {"sprites/00.png", "sprites/01.png", "sprites/02.png"}
    scores = {"metrics.json", "scores.json", "evaluation.json"}
    assert files == {"examples.png", *scores, *sprites}


class Half(PlainMetric):
    """Has a score for the first image alone."""

    percent = True
    scores = (0.5, math.nan)


def test_the_scores_of_images_are_saved_with_nothing_for_those_that_have_none(directory, model):
    model.assembly.metrics.extend([PlainMetric(), Half()])

    directory.save_results(
        collect_results(model.decomposer, model.assembly, {"half": 0.5, "plain_metric": 1.0})
    )

    assert json.loads((directory.folder / "scores.json").read_text()) == {"half": [0.5, None]}


def test_what_scores_are_for_is_saved(directory, model):
    model.assembly.metrics.extend([PlainMetric(), Half()])

    directory.save_results(
        collect_results(model.decomposer, model.assembly, {"half": 0.5, "plain_metric": 1.0})
    )

    about = json.loads((directory.folder / "evaluation.json").read_text())
    assert about == {
        "split": "test",
        "images": 8,
        "files": [],
        "percent": ["half"],
        "failed": {},
    }


def test_a_metric_that_was_not_measured_has_no_scores_either(directory, model):
    model.assembly.metrics.append(Half())

    directory.save_results(collect_results(model.decomposer, model.assembly, {}))

    assert json.loads((directory.folder / "scores.json").read_text()) == {}
    assert json.loads((directory.folder / "evaluation.json").read_text())["percent"] == []


def test_a_metric_without_a_number_is_null(directory, model):
    directory.save_results(collect_results(model.decomposer, model.assembly, {"mse": math.nan}))

    text = (directory.folder / "metrics.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {"mse": None}


def test_a_later_evaluation_of_the_same_settings_replaces_the_first(directory):
    settings = {"split": "test", "images": 8}

    first = directory.save_evaluation(settings, {"metrics": {"mse": 0.5}})
    second = directory.save_evaluation(settings, {"metrics": {"mse": 0.25}})

    assert first == second == directory.folder / "evaluations" / "test.json"
    assert json.loads(first.read_text()) == {"settings": settings, "metrics": {"mse": 0.25}}


def test_an_evaluation_of_other_settings_replaces_none(directory):
    paths = [
        directory.save_evaluation({"split": split, "images": images}, {})
        for split, images in [("test", 8), ("test", 4), ("train", 8), ("test", 4)]
    ]

    assert [path.name for path in paths] == [
        "test.json",
        "test-2.json",
        "train.json",
        "test-2.json",
    ]


def test_a_file_that_is_no_evaluation_is_left_alone(directory):
    (directory.folder / "evaluations").mkdir()
    odd = directory.folder / "evaluations" / "test.json"
    odd.write_text("my notes")

    path = directory.save_evaluation({"split": "test"}, {})

    assert (odd.read_text(), path.name) == ("my notes", "test-2.json")


def test_sprites_are_saved_in_their_order_with_their_alpha(directory, model):
    with torch.no_grad():
        for number in range(3):
            model.decomposer.sprites.pixels[number] = torch.tensor(
                [0.0, 1.0, 0.6, 0.2 * number]
            )[:, None, None]

    directory.save_results(collect_results(model.decomposer, model.assembly, {}))

    for number in range(3):
        picture = Image.open(directory.folder / "sprites" / f"0{number}.png")
        assert picture.mode == "RGBA"
        assert np.unique(np.asarray(picture).reshape(-1, 4), axis=0).tolist() == [
            [0, 255, 153, 51 * number]
        ]


def _files(directory):
    return (path for path in directory.folder.rglob("*") if path.is_file())


def test_a_file_whose_writing_is_interrupted_is_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.pt"
    write_atomic(path, "before")

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, "after")

    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
