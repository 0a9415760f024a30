import pytest

from celstack.errors import RecipeError
from celstack.recipe.build import assemble
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog

DATASET = """
from celstack import Dataset, hookimpl

class Odd(Dataset):
    splits = ("all",)
    image_shape = (3, 24, 24)
    {init}
    def count(self, split): return 1
    def read(self, split, indices): raise NotImplementedError

@hookimpl
def celstack_datasets():
    return {{"odd": Odd}}
"""


@pytest.fixture
def assembled(small, catalog):
    """Assemble the small recipe, with overrides."""
    return lambda *texts: assemble(resolve(read_recipe(small, texts), catalog), catalog)


@pytest.fixture
def problems(assembled):
    """Say what is wrong with the small recipe, with overrides."""

    def complain(*overrides):
        with pytest.raises(RecipeError) as refused:
            assembled(*overrides)
        return [str(problem) for problem in refused.value.problems]

    return complain


def test_parts_are_built_with_what_the_recipe_says(assembled):
    assert assembled("sprites.count=5").sprites.count == 5


def test_parts_are_known_by_the_names_recipes_use(assembled):
    layer = assembled().transforms.layer

    assert [transform.name for transform in layer] == ["color", "position"]


def test_parts_inside_parts_are_built(assembled):
    assert assembled("predictor.encoder.features=7").predictor.encoder.num_features == 7


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        (
            "dataset.per_image=3",
            "compositor.layers: 1 cannot hold the 3 objects that tetrominoes may show",
        ),
        (
            "transforms.layer=['color']",
            "sprites.size: [24, 24] is smaller than the canvas [35, 35] and nothing places it; "
            "add a transform that moves it, such as a position",
        ),
        ("stages=[{}]", "stages[0]: a stage takes either steps or epochs"),
        ("stages=[{steps=1, epochs=1}]", "stages[0]: a stage takes either steps or epochs"),
        ("stages=[]", "stages: there must be at least one, with steps or epochs"),
        (
            "evaluation.split=validation",
            "evaluation.split: tetrominoes has only the splits train, test",
        ),
        (
            "stages=[{steps=1, teacher='greedy'}]",
            "stages[0].teacher: greedy needs the very predictor that it would teach; "
            "take another",
        ),
        (
            "stages=[{steps=1, teacher='matching', selector='matching'}]",
            "stages[0].selector: matching does not ask the predictor, which would have been "
            "taught in vain; end with a selector that does",
        ),
        ("dataset.pieces=IXX", "dataset: pieces: must be some of IOTSZJL, not 'IXX'"),
    ],
)
def test_what_makes_no_sense_is_told_with_its_place(problems, override, problem):
    assert problems(override) == [problem]


def test_the_selectors_of_all_stages_are_checked_with_their_places(small, catalog):
    recipe = read_recipe(small, ["selector='matching'"])
    del recipe.table["predictor"]
    recipe.table["stages"] = [
        {"steps": 1, "selector": "greedy"},
        {"steps": 1, "teacher": "matching"},
        {"steps": 1, "teacher": "greedy"},
    ]

    with pytest.raises(RecipeError) as refused:
        assemble(resolve(recipe, catalog), catalog)

    asks = "greedy chooses among predictions; add a [predictor]"
    nobody = "there is no predictor to teach; add a [predictor]"
    assert [str(problem) for problem in refused.value.problems] == [
        f"stages[0].selector: {asks}",
        f"stages[1].teacher: {nobody}",
        f"stages[2].teacher: {nobody}",
    ]


def test_a_sprite_as_large_as_the_canvas_needs_nothing_to_place_it(assembled):
    assembled("transforms.layer=['color']", "sprites.size=[35, 35]")


@pytest.mark.parametrize("chain", ["sprite", "layer"])
def test_a_warp_of_either_chain_places_sprites(assembled, chain):
    assembled("transforms={}", "transforms.layer=[]", f"transforms.{chain}=['position']")


def test_all_that_makes_no_sense_is_in_one_report(problems):
    found = problems("dataset.per_image=3", "transforms.layer=[]", "evaluation.split=all")

    assert [line.split(":")[0] for line in found] == [
        "compositor.layers",
        "sprites.size",
        "evaluation.split",
    ]


def test_all_constructors_that_object_are_in_one_report(problems):
    found = problems("dataset.pieces=X", "stages=[{}]")

    assert [line.split(":")[0] for line in found] == ["dataset", "stages[0]"]


def with_odd_dataset(small, entry, *overrides):
    catalog = Catalog([*(p.entry for p in Catalog().plugins), entry])
    recipe = read_recipe(small, ["dataset.use=odd", *overrides])
    with pytest.raises(RecipeError) as refused:
        assemble(resolve(recipe, catalog), catalog)
    return [str(problem) for problem in refused.value.problems]


def test_a_dataset_needs_a_split_to_learn_from(small, plugin):
    entry = plugin("dataset-odd", DATASET.format(init=""))

    assert with_odd_dataset(small, entry, "evaluation.split=all") == [
        "dataset: odd has only the splits all, and learning needs one called train"
    ]


@pytest.mark.parametrize(
    ("init", "problem"),
    [
        (
            "image_shape = (24, 24, 3)",
            "image_shape is (24, 24, 3), which looks like (H, W, C); it must be (C, H, W) = "
            "(3, 24, 24), and read must return images.permute(0, 3, 1, 2)",
        ),
        (
            "image_shape = property(lambda self: open('/nowhere/stars.npy'))",
            "its image_shape is unknown: FileNotFoundError: [Errno 2] No such file or "
            "directory: '/nowhere/stars.npy'",
        ),
    ],
)
def test_a_dataset_needs_images_of_a_known_shape(small, plugin, init, problem):
    entry = plugin("dataset-odd", DATASET.format(init=init))

    assert with_odd_dataset(small, entry, "stages=[]") == [
        "stages: there must be at least one, with steps or epochs",
        f"dataset: {problem}",
    ]


def test_a_constructor_that_objects_in_its_own_words_is_told_with_its_place(small, plugin):
    init = "def __init__(self): raise KeyError('no\\nway')"
    entry = plugin("dataset-odd", DATASET.format(init=init))

    assert with_odd_dataset(small, entry) == ["dataset: KeyError: 'no\\nway'"]


def test_a_plugin_that_cannot_be_imported_is_told_with_its_place(small, plugin):
    entry = plugin("dataset-odd", "import h5pie\n" + DATASET.format(init=""))

    assert with_odd_dataset(small, entry) == [
        "dataset.use: broken plugin: dataset-odd (acme 1.0): "
        "ModuleNotFoundError: No module named 'h5pie'"
    ]
