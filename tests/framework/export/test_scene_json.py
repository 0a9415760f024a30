import copy
import json
import random

import pytest
import torch

from celstack import EMPTY, CelstackError, Decomposer, Scene, read_scene, write_scene
from celstack.export.scene_json import scene_from_json, scene_to_json
from celstack_kit.compositors.occlusion import Occlusion
from celstack_kit.encoders.strided import Strided
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.identity import Identity
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.similarity import Similarity


def made(sprites=4, backgrounds=2, layers=3, size=(10, 12)):
    """A model whose chains have a transform twice, and one without parameters."""
    torch.manual_seed(0)
    model = Decomposer(
        sprites=Pixels(count=sprites, size=(5, 5), jitter=0.2),
        backgrounds=Pixels(count=backgrounds) if backgrounds else None,
        sprite_transforms=[Similarity()],
        layer_transforms=[Color(), Position(), Color()],
        background_transforms=[Identity()],
        compositor=Occlusion(layers=layers),
        selector=Greedy(),
        predictor=Network(encoder=Strided(width=2, features=4), hidden=4),
    )
    model.prepare(torch.rand(4, 3, *size))
    return model.eval()


@pytest.fixture(scope="module")
def model():
    return made()


@pytest.fixture
def scene(model):
    torch.manual_seed(1)
    below = torch.tensor([[[0, 0, 0.25], [1, 0, 1], [0.75, 0, 0]]])
    return Scene(
        sprite=torch.tensor([[2, EMPTY, 0]]),
        sprite_params=torch.randn(1, 3, 4),
        layer_params=torch.randn(1, 3, 15) / 3,
        occlusion=below,
        background=torch.tensor([1]),
        background_params=torch.zeros(1, 0),
    )


@pytest.fixture
def table(model, scene):
    return json.loads(scene_to_json(scene, model))


def mistake(table, model, name="my.json"):
    """Return what is said of a scene, which is one line."""
    with pytest.raises(CelstackError) as caught:
        scene_from_json(table if isinstance(table, str) else json.dumps(table), model, name)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{name}: ")
    return line.removeprefix(f"{name}: ")


def test_a_scene_comes_back_to_the_last_bit(model, scene, tmp_path):
    write_scene(tmp_path / "scene.json", scene, model)

    back = read_scene(tmp_path / "scene.json", model)

    for name in ("sprite", "sprite_params", "layer_params", "occlusion", "background"):
        assert torch.equal(getattr(back, name), getattr(scene, name)), name
    assert back.background_params.shape == (1, 0)
    assert torch.equal(model.render(back).image, model.render(scene).image)


def test_numbers_of_any_size_come_back(model, scene):
    torch.manual_seed(2)
    wild = torch.randn(1, 3, 15) * 10.0 ** torch.randint(-40, 6, (1, 3, 15))

    back = scene_from_json(scene_to_json(scene.evolve(layer_params=wild), model), model)

    assert torch.equal(back.layer_params, wild)


def test_parameters_stand_under_the_names_of_their_transforms(table, scene):
    layer = table["layers"][2]

    assert list(layer["layer_params"]) == ["color", "position", "color-2"]
    assert layer["layer_params"]["position"] == pytest.approx(
        scene.layer_params[0, 2, 6:9].tolist()
    )
    assert list(layer["sprite_params"]) == ["similarity"]
    assert table["background"] == {"number": 1, "params": {"identity": []}}


def test_a_layer_that_is_empty_has_the_sprite_null(table):
    assert [layer["sprite"] for layer in table["layers"]] == [2, None, 0]


def test_occlusion_says_in_its_rows_what_a_layer_hides(table):
    assert table["occlusion"] == [[0, 0, 0.25], [1, 0, 1], [0.75, 0, 0]]


def test_the_canvas_is_said_with_width_and_height(table):
    assert table["canvas"] == {"width": 12, "height": 10}


def test_no_background_is_null(model, scene, table):
    text = scene_to_json(scene.evolve(background=None, background_params=None), model)

    assert json.loads(text)["background"] is None
    assert scene_from_json(text, model).background is None


def test_a_file_holds_one_image(model, scene):
    several = scene[torch.tensor([0, 0])]

    with pytest.raises(CelstackError, match="of one image, not of 2"):
        scene_to_json(several, model)


def test_what_is_not_a_number_is_not_written(model, scene):
    odd = scene.evolve(layer_params=scene.layer_params * torch.nan)

    with pytest.raises(CelstackError, match="NaN or infinite"):
        scene_to_json(odd, model)


def changed(table, path, value):
    table = copy.deepcopy(table)
    inner = table
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return table


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["format"], "psd", 'is not a scene: no "format": "celstack scene"'),
        (["version"], 2, "version: must be 1, not 2"),
        (["version"], True, "version: must be 1, not true"),
        (["colour"], 1, "unknown key 'colour'"),
        (["layer"], 1, "unknown key 'layer'; did you mean 'layers'?"),
        (
            ["sprites"],
            7,
            "sprites: does not match this model: 7, but the model has 4",
        ),
        (["sprites"], 4.0, "sprites: does not match this model: 4.0, but"),
        (["canvas", "width"], 13, "canvas: does not match this model"),
        (["backgrounds"], 0, "backgrounds: does not match this model"),
        (["layers"], [], "layers: must be a list of 3, not of 0"),
        (["layers"], None, "layers: must be a list of 3, not null"),
        (["layers", 1], 5, "layers[1]: must be a table of sprite, sprite_params, layer_params"),
        (["layers", 0, "sprite"], 4, "layers[0].sprite: must be one of 0 to 3, not 4"),
        (["layers", 0, "sprite"], -1, "layers[0].sprite: must be one of 0 to 3, not -1"),
        (["layers", 0, "sprite"], True, "layers[0].sprite: must be one of 0 to 3, not true"),
        (["layers", 0, "sprite"], 1.0, "layers[0].sprite: must be one of 0 to 3, not 1.0"),
        (
            ["layers", 0, "layer_params", "positon"],
            [],
            "layers[0].layer_params: unknown key 'positon'; did you mean 'position'?",
        ),
        (
            ["layers", 0, "layer_params", "position"],
            [0.0],
            "layers[0].layer_params.position: must be a list of 3, not of 1",
        ),
        (
            ["layers", 0, "layer_params", "position", 1],
            "0",
            "layers[0].layer_params.position[1]: must be a number from -1e+06 to 1e+06",
        ),
        (
            ["layers", 0, "sprite_params", "similarity", 3],
            1e7,
            "layers[0].sprite_params.similarity[3]: must be a number from -1e+06 to 1e+06",
        ),
        (["background", "number"], 2, "background.number: must be one of 0 to 1, not 2"),
        (["background"], 1, "background: must be a table of number, params, not 1"),
        (["occlusion", 0, 1], 1.5, "occlusion[0][1]: must be a number from 0 to 1, not 1.5"),
        (["occlusion", 1, 1], 0.5, "occlusion[1][1]: must be 0: a layer does not hide itself"),
        (
            ["occlusion", 0, 1],
            0.5,
            "occlusion[1][0] and occlusion[0][1]: must add up to 1: one layer hides the other",
        ),
        (["occlusion", 2], [0, 0], "occlusion[2]: must be a list of 3, not of 2"),
    ],
)
def test_a_mistake_is_told_with_its_place(table, model, path, value, said):
    assert mistake(changed(table, path, value), model).startswith(said)


@pytest.mark.parametrize("key", ["canvas", "sprites", "background", "layers", "occlusion"])
def test_a_missing_key_is_named(table, model, key):
    del table[key]

    assert mistake(table, model) == f"{key} is missing"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON: Expecting value"),
        ("{", "is not JSON: "),
        ("[1]", "is not a scene"),
        ('{"a": NaN}', "NaN is not a number in JSON"),
        ('{"a": -Infinity}', "-Infinity is not a number"),
        ('{"a": 1, "a": 2}', "duplicate key 'a'"),
        ("[" * 100_000, "cannot be read as JSON: nested too deeply"),
        ("1" * 5000, "is not JSON: "),
    ],
)
def test_what_is_not_json_is_told(model, text, said):
    assert mistake(text, model).startswith(said)


def test_a_number_too_large_for_a_float_is_refused(table, model):
    text = json.dumps(changed(table, ["layers", 0, "layer_params", "position", 0], 77))

    said = mistake(text.replace("77", "1e999"), model)

    assert said.endswith("must be a number from -1e+06 to 1e+06, not inf")


def test_a_background_is_refused_by_a_model_without(table, scene):
    plain = made(backgrounds=0)
    table["backgrounds"] = 0

    assert mistake(table, plain) == "background: must be null, because this model has none"


def test_a_scene_of_another_model_is_refused(table):
    assert "sprites: does not match this model" in mistake(table, made(sprites=5))
    assert "layers: must be a list of 2, not of 3" in mistake(table, made(layers=2))
    assert "canvas: does not match this model" in mistake(table, made(size=(12, 10)))


def test_a_file_that_is_not_text_is_told(model, tmp_path):
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(CelstackError, match=r"a\.json: is not JSON: not UTF-8 text"):
        read_scene(tmp_path / "a.json", model)
    with pytest.raises(CelstackError, match=r"cannot be read: No such file"):
        read_scene(tmp_path / "b.json", model)


ODD = [None, True, -1, 3, 4, 0.5, 1e30, float("nan"), "", "x", [], {}, [0], [[0]], {"a": 1}]


def spoil(value, chance):
    """Change one place of a table, wherever chance leads."""
    if chance.random() < 0.15 or not isinstance(value, list | dict) or not value:
        return chance.choice(ODD)
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = chance.choice(keys)
    act = chance.random()
    if act < 0.1:
        del value[key]
    elif act < 0.15 and isinstance(value, dict):
        value[chance.choice(["", "sprite", "é\n", "position"])] = chance.choice(ODD)
    else:
        value[key] = spoil(value[key], chance)
    return value


def test_spoilt_scenes_are_refused_in_one_line_or_can_be_rendered(table, model):
    chance = random.Random(0)
    refused = 0
    for _ in range(1500):
        text = json.dumps(spoil(copy.deepcopy(table), chance))
        try:
            scene = scene_from_json(text, model)
        except CelstackError as error:
            refused += 1
            assert len(str(error).splitlines()) == 1
            assert len(str(error)) < 300
        else:
            assert model.render(scene).image.isfinite().all()

    assert 1000 < refused < 1500


def test_spoilt_text_is_refused_in_one_line_or_can_be_rendered(table, model):
    chance = random.Random(0)
    text = json.dumps(table)
    for _ in range(1500):
        cut = chance.randrange(len(text))
        odd = chance.choice(["", "[", "}", '"', "9", "-", "e", "\x00", ",", "null", "NaN"])
        spoilt = text[:cut] + odd + text[cut + chance.randrange(3) :]
        try:
            scene = scene_from_json(spoilt, model)
        except CelstackError as error:
            assert len(str(error).splitlines()) == 1
        else:
            assert model.render(scene).image.isfinite().all()
