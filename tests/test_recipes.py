"""Every recipe resolves and trains; those of the paper say what the paper's authors ran."""

import math
import tomllib
from importlib.metadata import EntryPoint
from itertools import accumulate
from pathlib import Path

import pytest
import torch

import celstack
from celstack.recipe.build import assemble
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog

ROOT = Path(__file__).parent.parent
RECIPES = sorted(path.relative_to(ROOT / "recipes") for path in ROOT.glob("recipes/**/*.toml"))
STANDINS = ("multi_dsprites", "clevr6", "gtsrb8", "svhn", "weizmann_horse", "image_folder")
SHORT = (
    "training.batch_size=2",
    "training.reassign_every=2",
    "evaluation.images=2",
    "observers=[]",
)

# FACTS.md, section 1, row by row. "encoder times" is the hidden effect named there.
NAMES = [
    "tetrominoes",
    "multi_dsprites",
    "clevr6",
    "gtsrb8",
    "svhn",
    "weizmann_horse",
    "instagram",
]
FACTS = {
    "sprites": (19, 3, 6, 8, 10, 1, 40),
    "layers": (3, 5, 6, 1, 1, 1, 1),
    "backgrounds": (0, 1, 1, 1, 1, 1, 1),
    "sprite side": (24, 28, 40, 28, 32, 128, 128),
    "mask sigma": (5, 7, 10, 5, 8, 20, 20),
    "background start": (None, ("constant", 0.5), *["mean"] * 5),
    "batch": (32, 32, 32, 128, 128, 32, 32),
    "epochs": (210, 510, 450, 700, 55, 15_000, 850),
    "rate": (1e-4, 1e-4, 1e-4, 1e-3, 1e-3, 1e-3, 1e-3),
    "encoder times": (1, 7, 8, 2, 2, 2, 2),
    "milestones": ([100, 200], [250, 500], [250, 400], [600], [50], [14_000], [700]),
    "factors": ((1, 0.1), (1, 0.1), (1, 0.1), *[(0.1, 0.1)] * 4),
    "layer transforms": (*[["color", "position"]] * 3, *[[]] * 4),
    "sprite transforms begin": (
        {},
        {"similarity": 20},
        {"projective": 150},
        {"color": 0, "projective": 100, "tps": 350},
        {"color": 0, "projective": 10, "tps": 35},
        {"color": 0, "projective": 3000, "tps": 8000},
        {"color": 0, "projective": 100},
    ),
    "background transforms": (
        [],
        ["color"],
        ["color"],
        *[["color", "projective", "tps"]] * 3,
        ["color", "projective"],
    ),
    "frozen epochs": (1, 10, 40, 0, 0, 0, 0),
    "selection": (("greedy", 1), ("greedy", 3), ("greedy", 3), *[("exhaustive", None)] * 4),
    "price": (None, 1e-4, 1e-4, None, None, None, None),
    "occlusion predicted": (False, True, True, *[False] * 4),
    "encoder": (
        ("resnet32", 1),
        ("resnet32", 4),
        ("resnet18", 2),
        ("resnet32", 1),
        ("resnet32", 1),
        ("resnet18", 1),
        ("resnet18", 1),
    ),
    "usage checked every": (50, 100, 250, 25, 100, 300, 250),
    "noise": (0.4,) * 7,
    "appearance": (0.9,) * 7,
    "weight decay": (1e-6,) * 7,
    "reassigned below": (0.2,) * 7,
}

# What each ablation takes from its recipe, and no more. The encoder's rate follows the number
# of sub-networks, as in the paper's own recipes.
ABLATIONS = {
    "two_objects_greedy": {
        "dataset.objects",
        "compositor.layers",
        "predictor.encoder.pool",
        "training.encoder_rate",
    },
    "two_objects_exhaustive": {
        "dataset.objects",
        "compositor.layers",
        "predictor.encoder.pool",
        "training.encoder_rate",
        "selector.use",
        "selector.sweeps",
        "selector.most",
    },
    "without_occlusion": {"compositor.use", "compositor.ordering"},
    "without_shared_transforms": {
        "transforms.layer",
        "transforms.sprite",
        "training.encoder_rate",
    },
    "without_mask_noise": {"training.mask_noise"},
}


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def catalog(monkeypatch):
    """The kit as it is in this tree, whatever is installed, with stand-ins for datasets."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "standins"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    modules = dict(project["project"]["entry-points"]["celstack"])
    modules |= {f"dataset-{name}": "celstack_standins" for name in STANDINS}
    return Catalog(EntryPoint(name, module, "celstack") for name, module in modules.items())


@pytest.fixture
def table_of(catalog):
    """Everything that a recipe comes to, defaults included."""

    def read(path):
        return resolve(read_recipe(str(ROOT / "recipes" / path)), catalog).as_table()

    return read


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.as_posix())
def test_it_trains_for_a_step_as_it_begins_and_a_step_as_it_ends(path, catalog):
    recipe = read_recipe(str(ROOT / "recipes" / path), SHORT)
    stages = recipe.table["stages"]
    taught = [stage for stage in stages[1:-1] if "teacher" in stage]
    recipe.table["stages"] = [one_step(one) for one in (stages[0], *taught, stages[-1])]
    if recipe.table["dataset"]["use"] == "tetrominoes":
        # Enough of them for sprites that start from blobs.
        recipe.table["dataset"] |= {"count": 64, "test_count": 16}

    assembly = assemble(resolve(recipe, catalog), catalog)
    trained = celstack.run(assembly)

    assert all(
        torch.isfinite(value).all() for value in trained.decomposer.state_dict().values()
    )
    assert set(trained.scores) == {metric.name for metric in assembly.metrics}
    assert math.isfinite(trained.scores["mse"])


def test_there_is_a_recipe_for_each_experiment_of_the_paper():
    assert {p.stem for p in RECIPES if p.parent.name == "paper"} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_of_the_paper_says_what_its_authors_ran(name, table_of):
    facts = {fact: row[NAMES.index(name)] for fact, row in FACTS.items()}

    assert facts_in(table_of(f"paper/{name}.toml")) == facts


NETWORK = [path for path in RECIPES if path.parent.name == "network"]


def test_each_experiment_of_the_paper_has_a_size_for_two_cores():
    smaller = {path.stem.removesuffix("_two") for path in NETWORK}

    assert smaller == set(NAMES)


@pytest.mark.parametrize("path", NETWORK, ids=lambda path: path.stem)
def test_a_recipe_for_two_cores_is_the_papers_method(path, table_of):
    smaller = table_of(path)
    whole = table_of(f"paper/{path.stem.removesuffix('_two')}.toml")

    for section in ("transforms", "selector", "metrics"):
        assert smaller[section] == whole[section]
    assert smaller["predictor"]["use"] == "network"
    assert smaller["training"]["mask_noise"] == 0.4
    assert smaller["training"]["reassign_every"] > 0
    assert smaller["sprites"]["start"] == whole["sprites"]["start"]
    assert not any("teacher" in stage for stage in smaller["stages"])
    # A stage may forbid empty layers, but select in no other way than the paper's.
    selectors = [stage["selector"] for stage in smaller["stages"] if "selector" in stage]
    assert all(selector["use"] == whole["selector"]["use"] for selector in selectors)


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_has_a_name_of_its_own(name, table_of):
    names = [stage["name"] for stage in table_of(f"paper/{name}.toml")["stages"]]

    assert all(names)
    assert len(set(names)) == len(names)


def test_there_is_a_recipe_for_each_ablation():
    assert {p.stem for p in RECIPES if p.parent.name == "ablations"} == set(ABLATIONS)


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_changes_what_it_is_named_after_and_nothing_else(name, table_of):
    tetrominoes = name.startswith(("without_shared", "without_mask"))
    whole = flat(
        table_of("paper/tetrominoes.toml" if tetrominoes else "paper/multi_dsprites.toml")
    )
    changed = flat(table_of(f"ablations/{name}.toml"))

    differ = {key for key in whole | changed if whole.get(key) != changed.get(key)}

    named = {key for key in differ if not key.startswith("published.")}
    assert named - {"description"} == ABLATIONS[name]


# FACTS.md, section 6, and the paper's tables 1, 2, 3, 4 and 5.
PUBLISHED = {
    "tetrominoes": {"ari_fg": 99.6, "ari": 99.8, "macc": 99.5, "miou": 99.1},
    "multi_dsprites": {"ari_fg": 91.5, "ari": 95.0},
    "clevr6": {"ari_fg": 97.2, "ari": 90.7, "macc": 73.9, "miou": 56.3},
    "gtsrb8": {"accuracy": 89.4},
    "svhn": {"accuracy": 63.1},
    "weizmann_horse": {"cosegmentation": 87.9},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_recipe_of_the_paper_has_its_figures_and_measures_the_same(name, table_of):
    table = table_of(f"paper/{name}.toml")

    assert table["published"]["the paper"] == PUBLISHED[name]
    measured = {metric["use"] for metric in table["metrics"]}
    assert all(figures.keys() <= measured for figures in table["published"].values())


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_is_not_compared_with_figures_for_other_data(name, table_of):
    published = table_of(f"ablations/{name}.toml")["published"]

    assert published
    assert all(method.startswith("the paper, two") for method in published) == (
        name.startswith("two_objects")
    )


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.as_posix())
def test_it_describes_itself_in_a_line_of_its_own(path):
    text = (ROOT / "recipes" / path).read_text(encoding="utf-8")

    assert 10 < len(tomllib.loads(text)["description"]) <= 96


def one_step(stage):
    return {key: value for key, value in stage.items() if key != "epochs"} | {"steps": 1}


def flat(table, prefix=""):
    found = {}
    for key, value in table.items():
        inner = isinstance(value, dict)
        found |= flat(value, f"{prefix}{key}.") if inner else {prefix + key: value}
    return found


def facts_in(table):
    """Say what a recipe says in the words of FACTS.md."""
    sprites, training, selector = table["sprites"], table["training"], table["selector"]
    assert sprites["size"][0] == sprites["size"][1]
    assert training["prototype_rate"] == training["head_rate"]
    chains = {
        chain: [t["use"] for t in table["transforms"][chain]]
        for chain in ("sprite", "layer", "background")
    }
    encoder = table["predictor"]["encoder"]
    stages = table["stages"]
    begins = dict(
        zip(accumulate((s["epochs"] for s in stages), initial=0), stages, strict=False)
    )
    milestones, factors = milestones_in(begins)
    return {
        "sprites": sprites["count"],
        "layers": table["compositor"]["layers"],
        "backgrounds": table.get("backgrounds", {}).get("count", 0),
        "sprite side": sprites["size"][0],
        "mask sigma": sprites["mask_sigma"],
        "background start": background_start(table.get("backgrounds")),
        "batch": training["batch_size"],
        "epochs": sum(stage["epochs"] for stage in stages),
        "rate": training["head_rate"],
        "encoder times": round(training["encoder_rate"] / training["head_rate"], 9),
        "milestones": milestones,
        "factors": factors,
        "layer transforms": chains["layer"],
        "sprite transforms begin": {name: start_of(name, begins) for name in chains["sprite"]},
        "background transforms": chains["background"],
        "frozen epochs": sum(s["epochs"] for s in stages if s["freeze_sprites"]),
        "selection": (selector["use"], selector.get("sweeps")),
        "price": selector.get("empty_cost"),
        "occlusion predicted": table["compositor"]["use"] == "occlusion",
        "encoder": (encoder["use"], encoder["pool"]),
        "usage checked every": training["reassign_every"],
        "noise": training["mask_noise"],
        "appearance": sprites["appearance"],
        "weight decay": training["weight_decay"],
        "reassigned below": training["reassign_below"],
    }


def background_start(backgrounds):
    if backgrounds is None:
        return None
    constant = backgrounds["start"] == "constant"
    return ("constant", backgrounds["appearance"]) if constant else backgrounds["start"]


def start_of(transform, begins):
    """Return the epoch from which a transform is at work, to the end."""
    at_work = [transform in stage.get("transforms", [transform]) for stage in begins.values()]
    assert at_work == sorted(at_work)
    return list(begins)[at_work.index(True)]


def milestones_in(begins):
    """Return the epochs at which rates fall, and by what each time they are multiplied."""
    rates = [(s["prototype_factor"], s["network_factor"]) for s in begins.values()]
    falls = [
        (epoch, tuple(round(new / old, 9) for old, new in zip(before, after, strict=True)))
        for epoch, before, after in zip(list(begins)[1:], rates, rates[1:], strict=False)
        if before != after
    ]
    assert rates[0] == (1.0, 1.0)
    (factors,) = {factors for _, factors in falls}
    return [epoch for epoch, _ in falls], factors
