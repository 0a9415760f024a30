"""Every plugin of the kit keeps the promises of its kind: none escapes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import published
import pytest

import celstack.testing
import celstack_kit
from celstack.registry.catalog import Catalog
from celstack.registry.kinds import KINDS
from celstack.registry.signature import REQUIRED, inspect_class
from celstack.testing.parts import PlainEncoder

CATALOG = Catalog()
OURS = {p.entry.name: p for p in CATALOG.plugins if p.package == "celstack"}

# How to make the parts that have no defaults for all their options, and those whose
# defaults leave something out; several ways make several checks.
WAYS: dict[str, list[dict[str, Callable[[], Any]]]] = {
    "compositor-occlusion": [
        {"layers": lambda: 1},
        {"layers": lambda: 3},
        {"layers": lambda: 4, "ordering": lambda: True},
    ],
    "compositor-ordered": [{"layers": lambda: 1}, {"layers": lambda: 3}],
    "dataset-clevr6": [{"count": lambda: 2, "test_count": lambda: 1, "samples": lambda: 4}],
    "dataset-coins": [
        {"count": lambda: 20, "test_count": lambda: 5},
        {"count": lambda: 9, "test_count": lambda: 1, "objects": lambda: 2},
    ],
    "dataset-glyphs": [
        {"count": lambda: 20, "test_count": lambda: 5},
        {"count": lambda: 9, "test_count": lambda: 1, "letters": lambda: "xyz"},
    ],
    "dataset-gtsrb8": [
        {"root": lambda: published.as_zip(published.sign_files())},
        {"root": lambda: published.as_folder(published.sign_files())},
    ],
    "dataset-image_folder": [
        {"root": published.pictures},
        {"root": published.pictures, "labels": lambda: True, "held_out": lambda: 0.5},
    ],
    "dataset-multi_dsprites": [
        {"count": lambda: 20, "test_count": lambda: 5},
        {"count": lambda: 9, "test_count": lambda: 1, "objects": lambda: 2},
    ],
    "dataset-svhn": [{"root": lambda: published.digits([1, 10])}],
    "dataset-weizmann_horse": [{"root": lambda: published.as_tar(published.horse_files())}],
    "dataset-tetrominoes": [
        {"count": lambda: 20, "test_count": lambda: 5},
        {"count": lambda: 9, "pieces": lambda: "IO", "per_image": lambda: 1},
    ],
    "predictor-network": [{"encoder": PlainEncoder, "hidden": lambda: 8}],
    "prototype-generated": [
        {"count": lambda: 1},
        {"count": lambda: 3, "size": lambda: (4, 5), "latent": lambda: 3, "hidden": lambda: 6},
    ],
    "prototype-pixels": [
        {"count": lambda: 1},
        {"count": lambda: 3, "size": lambda: (4, 5), "jitter": lambda: 0.1},
        {"count": lambda: 2, "start": lambda: "mean", "mask": lambda: "opaque"},
        {"count": lambda: 2, "start": lambda: "sample"},
        {"count": lambda: 2, "start": lambda: "kmeans"},
        {"count": lambda: 2, "start": lambda: "invariant_kmeans"},
        {"count": lambda: 2, "start": lambda: "spectral"},
        {"count": lambda: 2, "start": lambda: "median"},
        {"count": lambda: 2, "views": lambda: 3},
    ],
    "selector-exhaustive": [{}, {"empty_cost": lambda: 0.01}],
    "selector-fitting": [{}, {"window": lambda: 2.0, "inverts": lambda: True}],
    "selector-greedy": [{}, {"empty_cost": lambda: 0.01, "sweeps": lambda: 2}],
    "selector-matching": [
        {},
        {"empty_cost": lambda: 0.01, "sweeps": lambda: 3},
        {
            "search": lambda: "residuals",
            "sizes": lambda: [1.0],
            "offsets": lambda: True,
            "refine": lambda: 2,
        },
    ],
}
CASES = [(name, way) for name in OURS for way in WAYS.get(name, [{}])]


def make(name: str, way: dict[str, Callable[[], Any]]) -> Any:
    plugin = OURS[name]
    part = CATALOG.load(plugin.kind, plugin.name)
    return part(**{option: value() for option, value in way.items()})


@pytest.mark.parametrize(("name", "way"), CASES, ids=[f"{n}-{len(w)}" for n, w in CASES])
def test_it_keeps_the_promises_of_its_kind(name, way):
    check = getattr(celstack.testing, f"check_{OURS[name].kind}")

    check(make(name, way))


def test_every_plugin_file_of_the_kit_is_installed():
    folder = Path(celstack_kit.__file__).parent
    files = [path for path in folder.rglob("*.py") if "@hookimpl" in path.read_text("utf-8")]
    names = [path.relative_to(folder).with_suffix("").parts for path in files]
    modules = {".".join(("celstack_kit", *name)).removesuffix(".__init__") for name in names}

    # Where this fails after adding a plugin, `pip install -e .` has to be run again.
    assert modules == {plugin.entry.module for plugin in OURS.values()}


def test_there_are_plugins_of_every_kind():
    assert {plugin.kind for plugin in OURS.values()} == set(KINDS)


@pytest.mark.parametrize("name", OURS)
def test_a_part_is_made_without_options_or_has_a_way_here(name):
    plugin = OURS[name]
    signature = inspect_class(CATALOG.load(plugin.kind, plugin.name))
    required = {option.name for option in signature.options if option.default is REQUIRED}

    assert all(required <= set(way) for way in WAYS.get(name, [{}]))
