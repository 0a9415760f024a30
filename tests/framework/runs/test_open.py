import json
import os

import pytest
import torch

from celstack.errors import CelstackError, RecipeError
from celstack.registry.signature import Signature
from celstack.runs import checkpoint
from celstack.runs import open as openrun
from celstack.runs.open import open_run
from celstack.training.evaluate import score


def refusal(folder, **options):
    with pytest.raises(CelstackError) as refused:
        open_run(folder, **options)
    (line,) = str(refused.value).splitlines()
    return line.replace(str(folder), "RUN")


def change_checkpoint(folder, **changes):
    state = torch.load(folder / "checkpoint.pt", weights_only=True)
    torch.save({**state, **changes}, folder / "checkpoint.pt")


def test_the_model_is_the_one_that_was_learned(small_run):
    opened = open_run(str(small_run))

    state = torch.load(small_run / "checkpoint.pt", weights_only=True)
    weights = opened.decomposer.state_dict()
    assert all(torch.equal(weights[name], state["model"][name]) for name in weights)
    assert opened.step == 2
    assert not opened.decomposer.training


def test_it_scores_as_it_did_at_the_end_of_the_run(small_run):
    opened = open_run(small_run)
    assembly = opened.assembly

    scores = score(opened.decomposer, assembly.dataset, assembly.metrics, assembly.evaluation)

    assert scores == json.loads((small_run / "metrics.json").read_text())


def test_no_image_is_read(small_run, monkeypatch):
    from celstack_kit.datasets.tetrominoes import Tetrominoes

    monkeypatch.setattr(Tetrominoes, "read", lambda *rest: pytest.fail("read"))

    open_run(small_run)


@pytest.mark.parametrize("start", ["spectral", "lookalikes", "kmeans"])
def test_nothing_is_clustered(copied_run, monkeypatch, start):
    from celstack_kit.prototypes.pixels import Pixels

    path = copied_run / "resolved.toml"
    path.write_text(path.read_text().replace('start = "constant"', f'start = "{start}"'))
    monkeypatch.setattr(Pixels, "prepare", lambda *rest: pytest.fail("prepared"))

    opened = open_run(copied_run)

    assert opened.assembly.sprites.start != "constant"
    state = torch.load(copied_run / "checkpoint.pt", weights_only=True)
    assert torch.equal(opened.decomposer.sprites.mask, state["model"]["sprites.mask"])


def test_the_random_state_is_left_alone(small_run):
    before = torch.get_rng_state()

    open_run(small_run)

    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("frozen", [True, False])
def test_sprites_are_frozen_if_they_were(copied_run, frozen):
    change_checkpoint(copied_run, sprites_frozen=frozen)

    assert open_run(copied_run).decomposer.sprites_frozen is frozen


@pytest.mark.parametrize(("stage", "name"), [(1, "matching"), (2, "greedy")])
def test_images_are_explained_as_in_the_stage_that_the_run_was_in(copied_run, stage, name):
    path = copied_run / "resolved.toml"
    first = '[[stages]]\nsteps = 1\nselector = "matching"\n\n'
    path.write_text(path.read_text().replace("[[stages]]", f"{first}[[stages]]"))
    change_checkpoint(copied_run, stage=stage)

    assert open_run(copied_run).decomposer.selector.name == name


def test_observers_that_are_not_installed_are_not_missed(copied_run):
    path = copied_run / "resolved.toml"
    path.write_text('observers = ["gone"]\n' + path.read_text().replace("observers = []", ""))

    open_run(copied_run)


def test_the_recipe_can_be_changed(small_run):
    opened = open_run(small_run, ["evaluation.images=3"])

    assert opened.assembly.evaluation.images == 3


def test_other_data_can_be_given(copied_run, tmp_path):
    path = copied_run / "resolved.toml"
    text = path.read_text()
    start, end = text.index("[dataset]"), text.index("[sprites]")
    folder = '[dataset]\nuse = "image_folder"\nroot = "nowhere"\nsize = [35, 35]\n\n'
    path.write_text(text[:start] + folder + text[end:])

    opened = open_run(copied_run, ["evaluation.split=train"], data=tmp_path / "here")

    assert opened.assembly.dataset.root == tmp_path / "here"


# Mistakes.


def test_a_plugin_that_is_gone_is_named(copied_run):
    path = copied_run / "resolved.toml"
    path.write_text(path.read_text().replace('use = "position"', 'use = "gone"'))

    with pytest.raises(RecipeError, match=r"transforms.* no transform is called 'gone'"):
        open_run(copied_run)


def test_data_for_a_dataset_that_reads_none_is_refused(small_run, monkeypatch):
    monkeypatch.setattr(openrun, "signature_of", lambda *rest: Signature((), ""))

    line = refusal(small_run, data="here")

    assert line == "--data here: tetrominoes reads no files (it has no option root)"


def test_a_run_without_a_checkpoint_has_learned_nothing(copied_run):
    (copied_run / "checkpoint.pt").unlink()

    assert refusal(copied_run) == (
        "RUN/checkpoint.pt: is missing: this run has no checkpoint yet"
    )


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_checkpoint_that_is_cut_off_is_refused(copied_run, share):
    path = copied_run / "checkpoint.pt"
    os.truncate(path, int(share * path.stat().st_size))

    assert refusal(copied_run).startswith("RUN/checkpoint.pt: is damaged: ")


def test_a_checkpoint_with_one_bit_of_a_weight_flipped_is_refused(copied_run):
    path = copied_run / "checkpoint.pt"
    weights = torch.load(path, weights_only=True)["model"]["sprites.colour"]
    content = bytearray(path.read_bytes())
    place = content.index(weights.numpy().tobytes()[:64])
    content[place] ^= 1
    path.write_bytes(content)

    assert refusal(copied_run).startswith("RUN/checkpoint.pt: is damaged: ")


def test_a_checkpoint_that_would_run_code_is_refused(copied_run):
    torch.save(os.system, copied_run / "checkpoint.pt")

    assert refusal(copied_run) == "RUN/checkpoint.pt: contains objects other than tensors"


def test_a_checkpoint_of_somebody_else_is_refused(copied_run):
    torch.save({"step": 1}, copied_run / "checkpoint.pt")

    assert "missing or invalid: model, optimizer, sprites_frozen, stage, version" in refusal(
        copied_run
    )


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        ({"model": 3}, "model"),
        ({"model": {"sprites.colour": "red"}}, "model"),
        ({"step": "many", "sprites_frozen": 1}, "sprites_frozen, step"),
    ],
)
def test_a_checkpoint_of_other_things_under_the_same_names_is_refused(
    copied_run, change, lacks
):
    change_checkpoint(copied_run, **change)

    assert refusal(copied_run).endswith(f": missing or invalid: {lacks}")


def test_a_recipe_without_a_dataset_is_refused_whatever_data_is_given(copied_run):
    (copied_run / "resolved.toml").write_text("seed = 1")

    with pytest.raises(RecipeError, match="dataset"):
        open_run(copied_run, data="here")


@pytest.mark.parametrize("made", ["0.0.9", "12.1.0"])
def test_a_checkpoint_of_another_version_is_refused(copied_run, made):
    change_checkpoint(copied_run, version=made)

    assert f"was written by celstack {made}, but this is " in refusal(copied_run)


def test_a_checkpoint_of_a_version_that_only_mends_faults_is_not(copied_run, monkeypatch):
    monkeypatch.setattr(checkpoint, "version", lambda _: "2.3.4")
    change_checkpoint(copied_run, version="2.3.1")

    open_run(copied_run)


def test_weights_of_another_shape_are_refused(small_run):
    assert refusal(small_run, overrides=["sprites.size=[23, 24]"]).startswith(
        "RUN: checkpoint.pt does not match the recipe: sprites.colour is "
        "[2, 3, 24, 24], not [2, 3, 23, 24]"
    )


@pytest.mark.parametrize("stage", [0, 2])
def test_a_stage_that_the_recipe_has_not_is_refused(copied_run, stage):
    change_checkpoint(copied_run, stage=stage)

    assert refusal(copied_run) == (
        f"RUN: checkpoint.pt does not match the recipe: it is in stage {stage} of 1"
    )


def test_weights_that_the_model_has_not_are_refused(small_run):
    line = refusal(small_run, overrides=["transforms.layer=['position']"])

    assert line.startswith("RUN: checkpoint.pt does not match the recipe: ")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda model: model.pop("sprites.mask"), "sprites.mask is missing"),
        (
            lambda model: model.update(extra=torch.zeros(1)),
            "extra is not in the recipe's model",
        ),
    ],
)
def test_missing_and_strange_weights_are_named(copied_run, change, said):
    model = torch.load(copied_run / "checkpoint.pt", weights_only=True)["model"]
    change(model)
    change_checkpoint(copied_run, model=model)

    assert refusal(copied_run) == f"RUN: checkpoint.pt does not match the recipe: {said}"
