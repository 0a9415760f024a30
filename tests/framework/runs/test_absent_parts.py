"""A run opens where its images, its dataset's package or a metric's package are not."""

import json
import tomllib

import pytest
import tomli_w
import torch

from celstack.errors import CelstackError, RecipeError
from celstack.registry.catalog import Catalog
from celstack.runs import open as openrun
from celstack.runs.checkpoint import stored_image_shape
from celstack.runs.open import open_run
from celstack.runs.used_packages import read_used_packages

SHAPE = (3, 35, 35)
FILES = """
import numpy as np
from celstack import Dataset, hookimpl

class Files(Dataset):
    def __init__(self, root: str = {root!r}):
        self.root = root
        {init}

    @property
    def image_shape(self):
        return np.load(self.root).shape

    def count(self, split): return 1
    def read(self, split, indices): raise NotImplementedError

@hookimpl
def celstack_datasets():
    return {{"files": Files}}
"""
INSTALL = "the run used that of acme-parts 0.3: 'pip install acme-parts==0.3' installs it"


def replace_dataset(folder, name):
    """Let the recipe of a run name another dataset, without options."""
    path = folder / "resolved.toml"
    text = path.read_text()
    start, end = text.index("[dataset]"), text.index("[sprites]")
    path.write_text(f'{text[:start]}[dataset]\nuse = "{name}"\n\n{text[end:]}')


def replace_metric(folder):
    """Let the recipe of a run name a metric that is not installed instead of mse."""
    path = folder / "resolved.toml"
    path.write_text(path.read_text().replace('use = "mse"', 'use = "gone"'))


def remember_package(folder, entry, package="acme-parts", version="0.3"):
    path = folder / "environment.json"
    found = json.loads(path.read_text())
    found["plugins"][entry] = package
    found["packages"][package] = version
    path.write_text(json.dumps(found))


def change_checkpoint(folder, **changes):
    state = torch.load(folder / "checkpoint.pt", weights_only=True)
    torch.save({**state, **changes}, folder / "checkpoint.pt")


@pytest.fixture
def files(plugin, monkeypatch, tmp_path):
    """Install a dataset that learns its shape from a file, which is not there."""

    def install(init="pass"):
        source = FILES.format(root=str(tmp_path / "stars.npy"), init=init)
        entries = [known.entry for known in Catalog().plugins]
        entries.append(plugin("dataset-files", source))
        monkeypatch.setattr(openrun, "Catalog", lambda used: Catalog(entries, used))

    return install


def test_a_checkpoint_knows_the_shape_of_images(small_run):
    state = torch.load(small_run / "checkpoint.pt", weights_only=True)

    assert stored_image_shape(state) == SHAPE


@pytest.mark.parametrize("init", ["pass", "np.load(root)"])
def test_a_run_opens_without_the_files_that_its_dataset_learns_its_shape_from(
    copied_run, files, init
):
    files(init)
    replace_dataset(copied_run, "files")

    opened = open_run(copied_run)

    assert opened.decomposer.canvas == (35, 35)
    assert opened.assembly.dataset.image_shape == SHAPE
    assert opened.assembly.dataset.name == "files"


def test_its_images_are_missed_when_they_are_read(copied_run, files, tmp_path):
    files()
    replace_dataset(copied_run, "files")
    dataset = open_run(copied_run).assembly.dataset

    for use in (lambda: dataset.read("test", [0]), lambda: dataset.count("test")):
        with pytest.raises(CelstackError) as refused:
            use()
        assert str(refused.value) == (
            "files: its images are not available here: FileNotFoundError: [Errno 2] No such "
            f"file or directory: '{tmp_path / 'stars.npy'}'"
        )


def test_a_run_opens_where_files_hold_images_of_another_shape_now(copied_run, files, tmp_path):
    import numpy as np

    files()
    replace_dataset(copied_run, "files")
    np.save(tmp_path / "stars.npy", np.zeros((3, 9, 9)))

    dataset = open_run(copied_run).assembly.dataset

    with pytest.raises(
        CelstackError, match=r"they are \(3, 9, 9\) now, and were \(3, 35, 35\)"
    ):
        dataset.count("test")


def test_a_run_opens_without_the_package_of_its_dataset(copied_run):
    replace_dataset(copied_run, "gone")
    remember_package(copied_run, "dataset-gone")

    dataset = open_run(copied_run).assembly.dataset

    with pytest.raises(CelstackError) as refused:
        dataset.count("test")
    line = str(refused.value)
    assert line.startswith(
        "gone: its images are not available here: no dataset is called 'gone'"
    )
    assert line.endswith(INSTALL)


def test_a_dataset_that_works_is_the_real_one(small_run):
    from celstack_kit.datasets.tetrominoes import Tetrominoes

    assert isinstance(open_run(small_run).assembly.dataset, Tetrominoes)


def test_a_dataset_that_the_user_changed_has_to_work(small_run):
    with pytest.raises(RecipeError, match="dataset: pieces: must be some of"):
        open_run(small_run, ["dataset.pieces=X"])


def test_a_run_of_0_1_0_needs_the_shape_that_its_dataset_knows(copied_run, files):
    files()
    replace_dataset(copied_run, "files")
    state = torch.load(copied_run / "checkpoint.pt", weights_only=True)
    del state["image_shape"]
    torch.save(state, copied_run / "checkpoint.pt")

    with pytest.raises(RecipeError, match="dataset: its image_shape is unknown: FileNotFound"):
        open_run(copied_run)


def test_a_run_of_0_1_0_opens_with_its_dataset(copied_run):
    state = torch.load(copied_run / "checkpoint.pt", weights_only=True)
    del state["image_shape"]
    torch.save(state, copied_run / "checkpoint.pt")
    (copied_run / "environment.json").write_text('{"packages": {"celstack": "0.1.0"}}')

    assert open_run(copied_run).assembly.dataset.image_shape == SHAPE


@pytest.mark.parametrize(
    "shape", [None, "3x3", [3, 35], [3.0, 35.0, 35.0], [0, 35, 35], [3, 2**40, 2**40]]
)
def test_a_damaged_shape_is_none(copied_run, shape):
    change_checkpoint(copied_run, image_shape=shape)

    assert open_run(copied_run).assembly.dataset.image_shape == SHAPE


def test_a_run_opens_without_the_package_of_a_metric(copied_run):
    replace_metric(copied_run)
    remember_package(copied_run, "metric-gone")

    opened = open_run(copied_run)

    assert [metric.name for metric in opened.assembly.metrics] == ["ari"]
    assert list(opened.left_out) == ["gone"]
    assert opened.left_out["gone"].startswith("no metric is called 'gone'")
    assert opened.left_out["gone"].endswith(INSTALL)


def validate(folder, **options):
    """Let the recipe of a run evaluate during training."""
    path = folder / "resolved.toml"
    table = tomllib.loads(path.read_text())
    table["validation"] |= {"every": 1, **options}
    path.write_text(tomli_w.dumps(table))


def test_a_run_that_was_stopped_by_a_metric_opens_without_its_package(copied_run):
    validate(copied_run, stop_on="gone")
    replace_metric(copied_run)

    opened = open_run(copied_run)

    assert list(opened.left_out) == ["gone"]
    assert opened.assembly.validation.stop_on == "gone"


@pytest.mark.parametrize("overrides", [[], ["dataset.count=8"]])
def test_a_run_opens_without_the_split_that_it_was_validated_on(copied_run, overrides):
    validate(copied_run, split="val")
    if not overrides:
        replace_dataset(copied_run, "gone")

    assert open_run(copied_run, overrides).assembly.validation.split == "val"


def test_mistakes_in_options_of_the_validation_are_still_told(copied_run):
    with pytest.raises(RecipeError, match=r"validation\.evry: validation takes every"):
        open_run(copied_run, ["validation.evry=1"])


def test_nothing_is_left_out_where_all_is_there(small_run):
    assert open_run(small_run).left_out == {}


def test_a_metric_that_the_user_asks_for_has_to_be_there(copied_run):
    with pytest.raises(RecipeError, match="no metric is called 'gone'"):
        open_run(copied_run, ["metrics=['gone']"])


@pytest.mark.parametrize("replace", [replace_metric, lambda run: replace_dataset(run, "gone")])
@pytest.mark.parametrize(
    "words",
    [
        ["sprites", "RUN", "--out", "sprites"],
        ["report", "RUN"],
        ["vary", "RUN", "--out", "vary.png"],
        ["decompose", "RUN", "RUN/examples", "--out", "parts"],
        ["compare", "RUN", "RUN"],
        ["table", "RUN"],
    ],
    ids=lambda words: words[0],
)
def test_commands_work_without_images_and_metrics(
    copied_run, command, tmp_path, monkeypatch, words, replace
):
    monkeypatch.chdir(tmp_path)
    replace(copied_run)

    answer = command("celstack", *(word.replace("RUN", str(copied_run)) for word in words))

    assert (answer.code, answer.complaint) == (0, "")


def test_scores_of_a_metric_that_is_gone_stay_on_the_page(copied_run, command):
    replace_metric(copied_run)
    score = json.loads((copied_run / "metrics.json").read_text())["mse"]

    command("celstack", "report", str(copied_run))

    assert f"{score:.3g}" in (copied_run / "report.html").read_text()


def test_an_evaluation_leaves_a_metric_out_that_is_gone_and_says_what_to_install(
    copied_run, command
):
    replace_metric(copied_run)
    remember_package(copied_run, "metric-gone")

    answer = command("celstack", "evaluate", str(copied_run), "--device", "cpu")

    assert answer.code == 0
    (line,) = answer.complaint.splitlines()
    assert line.startswith("celstack: warning: metric gone is left out: no metric is called")
    assert line.endswith(INSTALL)
    assert "ari" in answer.said


def test_an_evaluation_without_images_says_so_in_one_line(copied_run, command):
    replace_dataset(copied_run, "gone")

    answer = command("celstack", "evaluate", str(copied_run), "--device", "cpu")

    assert answer.code == 2
    (line,) = answer.complaint.splitlines()
    assert line.startswith("celstack: gone: its images are not available here: ")


def test_a_run_that_is_resumed_needs_all_of_its_plugins(copied_run, command):
    replace_metric(copied_run)
    remember_package(copied_run, "metric-gone")
    (copied_run / "metrics.json").unlink()

    answer = command("run-recipe", "--resume", str(copied_run))

    assert answer.code == 2
    (line,) = answer.complaint.splitlines()
    assert "metrics[0].use: no metric is called 'gone'" in line
    assert line.endswith(INSTALL)


@pytest.mark.parametrize(
    ("package", "version"),
    [("acme; rm -rf ~", "0.3"), ("acme", "0.3 && reboot"), ("--index-url=x", "1"), (3, 4)],
)
def test_what_might_be_a_command_is_not_shown(copied_run, package, version):
    remember_package(copied_run, "metric-gone", package, version)

    assert "metric-gone" not in read_used_packages(copied_run)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"plugins": 3, "packages": {}}', "null"])
def test_a_damaged_environment_names_no_packages(copied_run, text):
    (copied_run / "environment.json").write_text(text)

    assert read_used_packages(copied_run) == {}
