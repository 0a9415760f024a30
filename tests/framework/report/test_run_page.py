"""The page of a run, as somebody reads it who opens the file."""

import json
import shutil
from datetime import datetime

import pytest
import tomli_w
import torch
from PIL import Image

from celstack import Assembly, Batch, Dataset, Scene, Stage
from celstack.errors import CelstackError
from celstack.evaluation.visualize import to_pil_image
from celstack.report.gallery import is_ordered
from celstack.report.run_page import RunStatus, make_page
from celstack.runs.directory import EXAMPLES
from celstack.runs.examples import choose_examples, example_file_names
from celstack.runs.finished import read_resolved
from celstack.runs.open import open_run
from celstack.testing.model import PlainSelector, plain_scene
from celstack.testing.parts import PlainCompositor, PlainPredictor, PlainPrototype

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</style></script><!--",
    "{{ 7 * 7 }}{% raw %}",
    "🦆 Ünïcödé ‮",
    "very" * 2000,
]


def page_of(folder, state=None):
    run = open_run(folder)
    return make_page(folder, run.assembly, run.decomposer, state).text


@pytest.fixture(scope="module")
def small_page(small_run):
    """The text of a page of the small run."""
    return page_of(small_run)


def test_it_has_all_sections(small_page, parsed):
    text = parsed(small_page).text

    for heading in ("Sprites", "Scores", "Examples", "Run"):
        assert heading in text
    for fact in ("2 sprites were learned", "this run", "Time and cost", "core", "torch"):
        assert fact in text
    assert "Not finished" not in text


def test_it_needs_no_other_file_and_no_network(small_page, parsed):
    page = parsed(small_page)

    assert all(value.startswith(("data:image/", "#")) for value in page.addresses)
    assert {"link", "iframe", "object", "base"}.isdisjoint(page.tags)
    assert "url(" not in small_page
    assert "@import" not in small_page
    assert "default-src 'none'" in small_page


def test_it_is_made_for_phones_and_for_the_dark(small_page):
    assert 'name="viewport" content="width=device-width' in small_page
    assert "prefers-color-scheme: dark" in small_page
    for name in ("--paper", "--ink", "--muted", "--line", "--accent"):
        # Light, dark because the reader's system is, dark because the reader says so.
        assert small_page.count(f"{name}: ") >= 3


def test_every_picture_says_what_it_is(small_page, parsed):
    page = parsed(small_page)

    named = [value for tag, name, value in page.attributes if tag == "img" and name == "alt"]
    assert len(named) == page.tags.count("img") > 0
    assert all(named)


def test_examples_are_taken_apart(small_page, parsed):
    text = parsed(small_page).text

    for caption in ("image", "reconstruction", "sprites", "objects"):
        assert text.count(f" {caption} ") >= 16
    for title in ("Best scores", "Worst scores", "Random selection"):
        assert title in text
    assert "ari " in text


def test_later_layers_are_in_front_only_where_they_hide_all_others():
    scene = Scene(torch.zeros(1, 3).long(), *torch.zeros(2, 1, 3, 0), torch.zeros(1, 3, 3))
    fixed = torch.ones(3, 3).tril(-1)[None]
    other = fixed.clone()
    other[0, 2, 1], other[0, 1, 2] = 0, 1

    assert is_ordered(scene.evolve(occlusion=fixed))
    assert not is_ordered(scene.evolve(occlusion=other))


def test_it_says_what_hides_what(small_page, small_run, parsed, monkeypatch):
    assert "the last layer in front" in parsed(small_page).text

    monkeypatch.setattr("celstack.report.gallery.is_ordered", lambda scene: False)

    text = parsed(page_of(small_run)).text
    assert "their depth order is predicted for each image" in text
    assert "the last layer in front" not in text


def test_without_the_data_it_is_made_from_what_the_run_keeps(copied_run, parsed, monkeypatch):
    from celstack_kit.datasets.tetrominoes import Tetrominoes

    def gone(self, *_):
        raise CelstackError("the images are elsewhere")

    monkeypatch.setattr(Tetrominoes, "read", gone)
    monkeypatch.setattr(Tetrominoes, "count", gone)

    assert "Best scores" in parsed(page_of(copied_run)).text
    shutil.rmtree(copied_run / EXAMPLES)
    text = parsed(page_of(copied_run)).text
    assert "No examples: the images are elsewhere." in text
    assert "A sprite is a small image with transparency." in text


def test_without_stored_examples_images_of_the_dataset_are_shown(copied_run, parsed):
    shutil.rmtree(copied_run / EXAMPLES)

    text = parsed(page_of(copied_run)).text

    assert "Random selection" in text
    assert "Best scores" not in text


def test_a_run_that_goes_on_is_looked_at_again(copied_run, parsed):
    (copied_run / "metrics.json").unlink()
    (copied_run / "census.json").unlink()

    page = page_of(copied_run, RunStatus("The run goes on.", 30))

    assert '<meta http-equiv="refresh" content="30">' in page
    assert f"The run goes on. Last active: {datetime.now():%Y-%m-%d}" in page
    assert "There are no scores yet" in parsed(page).text
    assert "2 sprites are being learned" in parsed(page).text


def test_a_run_that_was_left_says_so(copied_run, parsed):
    (copied_run / "metrics.json").unlink()

    text = parsed(page_of(copied_run)).text
    assert "Not finished: this is step 2." in text
    lines = map(json.loads, (copied_run / "log.jsonl").read_text().splitlines())
    when = datetime.fromtimestamp([one["time"] for one in lines if "time" in one][-1])
    assert f"Last active: {when:%Y-%m-%d %H:%M:%S}" in text


def test_a_time_that_no_clock_shows_is_left_out(copied_run, parsed):
    (copied_run / "metrics.json").unlink()
    with (copied_run / "log.jsonl").open("a") as log:
        log.write('{"step": 2, "time": 1e300}\n')

    text = parsed(page_of(copied_run)).text

    assert "Not finished: this is step 2." in text
    assert "Last active" not in text


def test_looking_leaves_the_model_and_chance_alone(small_run):
    run = open_run(small_run)
    run.decomposer.train()
    before, state = run.decomposer.state_dict(), torch.get_rng_state()
    before = {name: value.clone() for name, value in before.items()}

    make_page(small_run, run.assembly, run.decomposer)

    assert run.decomposer.training
    assert torch.equal(torch.get_rng_state(), state)
    after = run.decomposer.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_a_page_that_fails_leaves_the_model_in_its_mode(small_run, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    run = open_run(small_run)
    run.decomposer.train()
    monkeypatch.setattr(run.decomposer, "explain", fail)

    with pytest.raises(ZeroDivisionError):
        make_page(small_run, run.assembly, run.decomposer)

    assert run.decomposer.training


@pytest.mark.parametrize(
    "name", HOSTILE, ids=["script", "quotes", "ends", "jinja", "odd", "long"]
)
def test_hostile_names_are_shown_as_text(copied_run, parsed, name):
    plain = parsed(page_of(copied_run))
    recipe = read_resolved(copied_run)
    recipe |= {"description": name, "published": {name: {"ari": 50.0}}}
    (copied_run / "resolved.toml").write_text(tomli_w.dumps(recipe), encoding="utf-8")
    with (copied_run / "log.jsonl").open("a") as log:
        log.write(json.dumps({"step": 2, "begins": name}) + "\n")
    census = json.loads((copied_run / "census.json").read_text())
    census["classes"][1] = census["names"][0] = name
    (copied_run / "census.json").write_text(json.dumps(census))
    (copied_run / "environment.json").write_text(json.dumps({"command": [name], "cores": name}))

    page = parsed(page_of(copied_run))

    spelt = " ".join(name.split())
    # Description, method, class, sprite, caption of a layer, command, cores, recipe.
    assert page.text.count(spelt) >= 6
    for tag in ("script", "style", "details"):
        assert page.tags.count(tag) == plain.tags.count(tag)
    assert page.handlers == []
    assert all(value.startswith(("data:image/", "#")) for value in page.addresses)


class Noise(Dataset):
    """Images that no format makes small."""

    image_shape = (3, 128, 128)

    def count(self, split):
        return 32

    def read(self, split, indices):
        return Batch(torch.rand(len(indices), *self.image_shape))


class Turns(PlainSelector):
    """Fill layers with one sprite after the other."""

    def explain(self, images, decomposer, noise, allow_empty):
        layers = decomposer.compositor.layers
        sprite = torch.arange(len(images) * layers).view(-1, layers) % decomposer.sprites.count
        return plain_scene(sprite, decomposer.predict(images), decomposer)


def test_forty_sprites_and_thirty_two_examples_of_128_pixels_take_less_than_10_mb(tmp_path):
    assembly = Assembly(
        dataset=Noise(),
        sprites=PlainPrototype(count=40),
        backgrounds=PlainPrototype(count=1),
        compositor=PlainCompositor(layers=4),
        selector=Turns(),
        predictor=PlainPredictor(),
        stages=[Stage(steps=1)],
    )
    decomposer = assembly.decomposer()
    decomposer.prepare(torch.rand(2, 3, 128, 128))
    examples = choose_examples({"mse": [float(n) for n in range(32)]}, [], 32)
    (tmp_path / EXAMPLES).mkdir()
    for name in example_file_names(examples):
        to_pil_image(torch.rand(3, 128, 128)).save(tmp_path / EXAMPLES / name)
    counts = [[number + 1] * 41 for number in range(40)]
    names = [f"class {number}" for number in range(40)]
    census = {"images": 32, "usage": [3] * 40, "unit": "pixels", "classes": names}
    census |= {"counts": counts, "names": names}
    (tmp_path / "census.json").write_text(json.dumps(census))

    page = make_page(tmp_path, assembly, decomposer).text

    assert page.count("data:image/") > 2 * 40 + 32 * 8
    assert len(page.encode()) < 10_000_000


def test_grey_images_are_shown_too(tmp_path, parsed):
    class Grey(Noise):
        image_shape = (1, 12, 10)

    assembly = Assembly(
        dataset=Grey(),
        sprites=PlainPrototype(),
        compositor=PlainCompositor(),
        selector=PlainSelector(),
        predictor=PlainPredictor(),
        stages=[Stage(steps=1)],
    )
    decomposer = assembly.decomposer()
    decomposer.prepare(torch.rand(2, 1, 12, 10))
    (tmp_path / EXAMPLES).mkdir()
    Image.new("L", (10, 12), 99).save(tmp_path / EXAMPLES / "00-random-7.png")

    text = parsed(make_page(tmp_path, assembly, decomposer).text).text

    assert "image 7" in text
