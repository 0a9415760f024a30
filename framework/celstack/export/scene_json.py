"""Scene files: the scene of one image as JSON, validated against the model."""

from __future__ import annotations

import json
import math
import re
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from celstack.errors import CelstackError
from celstack.files import write_atomic
from celstack.json_checks import (
    check_index,
    check_keys,
    check_list,
    check_numbers,
    format_json,
    parse,
)
from celstack.model.decomposer import Decomposer
from celstack.model.transform_chain import TransformChain
from celstack.scene import EMPTY, Scene

FORMAT = "celstack scene"
VERSION = 1
MAX_ABS_PARAM = 1e6
"""Larger parameters are rejected, because rendering them would overflow."""
HEADER_KEYS = ("format", "version", "canvas", "sprites", "backgrounds")
LAYER_KEYS = ("sprite", "sprite_params", "layer_params")


def write_scene(path: str | Path, scene: Scene, decomposer: Decomposer) -> None:
    """Write the scene of one image to a JSON file, atomically."""
    write_atomic(Path(path), scene_to_json(scene, decomposer))


def read_scene(path: str | Path, decomposer: Decomposer) -> Scene:
    """Read the scene of one image from a JSON file.

    Raises:
        CelstackError: The file is not a scene that this model can render.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise CelstackError(f"{path}: is not JSON: not UTF-8 text") from None
    except OSError as error:
        raise CelstackError(f"{path}: cannot be read: {error.strerror}") from error
    return scene_from_json(text, decomposer, str(path))


def scene_to_json(scene: Scene, decomposer: Decomposer) -> str:
    """Encode the scene of one image as JSON.

    Layers are listed from the back. The ``sprite`` of an empty layer is null, and
    ``occlusion[j][l]`` is 1 where layer j hides layer l. Parameters are listed by transform;
    a second transform of the same name in a chain is called ``name-2``.
    """
    if len(scene) != 1:
        raise CelstackError(f"a scene file holds the scene of one image, not of {len(scene)}")
    layers = [
        {
            "sprite": None if sprite == EMPTY else sprite,
            "sprite_params": _params_to_table(
                decomposer.sprite_chain, scene.sprite_params[0, layer]
            ),
            "layer_params": _params_to_table(
                decomposer.layer_chain, scene.layer_params[0, layer]
            ),
        }
        for layer, sprite in enumerate(scene.sprite[0].tolist())
    ]
    background = None
    if scene.background is not None and scene.background_params is not None:
        params = _params_to_table(decomposer.background_chain, scene.background_params[0])
        background = {"number": int(scene.background[0]), "params": params}
    occlusion = [_shortest_floats(row) for row in scene.occlusion[0]]
    table = {
        **_model_header(decomposer),
        "background": background,
        "layers": layers,
        "occlusion": occlusion,
    }
    text = json.dumps(table, indent=2, ensure_ascii=False)
    # Write lists of numbers on one line.
    return re.sub(r"\[\s+([-+.,\seE\d]*?)\s+\]", _in_one_line, text) + "\n"


def scene_from_json(text: str, decomposer: Decomposer, source: str = "scene") -> Scene:
    """Decode the scene of one image, and validate it against a model."""
    try:
        return _read(parse(text), decomposer)
    except CelstackError as error:
        raise CelstackError(f"{source}: {error}") from None


def param_names(chain: TransformChain) -> list[str]:
    """Return distinct names of the transforms of a chain."""
    names = [transform.name for transform in chain]
    before = [names[:place].count(name) for place, name in enumerate(names)]
    return [
        f"{name}-{count + 1}" if count else name
        for name, count in zip(names, before, strict=True)
    ]


def _model_header(decomposer: Decomposer) -> dict[str, Any]:
    """Return the properties that a scene and its model must have in common."""
    height, width = decomposer.canvas
    backgrounds = decomposer.backgrounds.count if decomposer.backgrounds is not None else 0
    canvas = {"width": width, "height": height}
    about = (FORMAT, VERSION, canvas, decomposer.sprites.count, backgrounds)
    return dict(zip(HEADER_KEYS, about, strict=True))


def _read(table: Any, decomposer: Decomposer) -> Scene:
    if not isinstance(table, dict) or table.get("format") != FORMAT:
        raise CelstackError(f'is not a scene: no "format": "{FORMAT}"')
    version = table.get("version")
    if type(version) is not int or version != VERSION:
        raise CelstackError(f"version: must be {VERSION}, not {format_json(version)}")
    check_keys(table, (*HEADER_KEYS, "background", "layers", "occlusion"), "")
    for key, here in _model_header(decomposer).items():
        # Compared as text, because 1.0 and true equal 1 in Python.
        if json.dumps(table[key], sort_keys=True) != json.dumps(here, sort_keys=True):
            both = f"{format_json(table[key])}, but the model has {format_json(here)}"
            raise CelstackError(f"{key}: does not match this model: {both}")
    count = decomposer.compositor.layers
    sprites: list[int] = []
    of_sprite: list[list[float]] = []
    of_layer: list[list[float]] = []
    for number, value in enumerate(check_list(table["layers"], count, "layers")):
        place = f"layers[{number}]"
        layer = check_keys(value, LAYER_KEYS, place)
        sprites.append(_read_sprite(layer["sprite"], decomposer, f"{place}.sprite"))
        for key, chain, params in (
            ("sprite_params", decomposer.sprite_chain, of_sprite),
            ("layer_params", decomposer.layer_chain, of_layer),
        ):
            params.append(_read_params(layer[key], chain, f"{place}.{key}"))
    occlusion = _read_occlusion(table["occlusion"], count)
    background = _read_background(table["background"], decomposer)
    like = next(decomposer.sprites.parameters()).detach()
    return Scene(
        sprite=torch.tensor([sprites], device=like.device),
        sprite_params=like.new_tensor(of_sprite).view(1, count, -1),
        layer_params=like.new_tensor(of_layer).view(1, count, -1),
        occlusion=like.new_tensor([occlusion]),
        background=torch.tensor([background[0]], device=like.device) if background else None,
        background_params=like.new_tensor([background[1]]) if background else None,
    )


def _read_sprite(value: Any, decomposer: Decomposer, place: str) -> int:
    return EMPTY if value is None else check_index(value, decomposer.sprites.count, place)


def _read_background(value: Any, decomposer: Decomposer) -> tuple[int, list[float]] | None:
    if value is None:
        return None
    if decomposer.backgrounds is None:
        raise CelstackError("background: must be null, because this model has none")
    table = check_keys(value, ("number", "params"), "background")
    number = check_index(table["number"], decomposer.backgrounds.count, "background.number")
    chain = decomposer.background_chain
    return number, _read_params(table["params"], chain, "background.params")


def _read_params(value: Any, chain: TransformChain, place: str) -> list[float]:
    names = param_names(chain)
    table = check_keys(value, names, place)
    counts = [transform.num_params for transform in chain]
    return [
        number
        for name, count in zip(names, counts, strict=True)
        for number in check_numbers(
            table[name], count, -MAX_ABS_PARAM, MAX_ABS_PARAM, f"{place}.{name}"
        )
    ]


def _read_occlusion(value: Any, count: int) -> list[list[float]]:
    rows = [
        check_numbers(row, count, 0.0, 1.0, f"occlusion[{number}]")
        for number, row in enumerate(check_list(value, count, "occlusion"))
    ]
    for j, row in enumerate(rows):
        if row[j] != 0.0:
            raise CelstackError(f"occlusion[{j}][{j}]: must be 0: a layer does not hide itself")
        for other in range(j):
            if abs(row[other] + rows[other][j] - 1.0) > 1e-3:
                places = f"occlusion[{j}][{other}] and occlusion[{other}][{j}]"
                raise CelstackError(f"{places}: must add up to 1: one layer hides the other")
    return rows


def _params_to_table(
    chain: TransformChain, params: Float[Tensor, " P"]
) -> dict[str, list[float]]:
    numbers = iter(_shortest_floats(params))
    counts = [transform.num_params for transform in chain]
    return {
        name: list(islice(numbers, count))
        for name, count in zip(param_names(chain), counts, strict=True)
    }


def _shortest_floats(numbers: Float[Tensor, " n"]) -> list[float]:
    """Return floats with the fewest digits that round-trip at the tensor's precision."""
    found = [float(str(number)) for number in numbers.detach().cpu().numpy()]
    if not all(math.isfinite(number) for number in found):
        raise CelstackError("cannot write a scene with parameters that are NaN or infinite")
    return found


def _in_one_line(found: re.Match[str]) -> str:
    return f"[{' '.join(found[1].split())}]"
