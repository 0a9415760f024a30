"""Check that a model can render a scene, which somebody may have edited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from celstack.errors import CelstackError
from celstack.scene import EMPTY, Scene
from celstack.tensor_fields import tensor_fields

if TYPE_CHECKING:
    from celstack.interfaces.predictor import Outline


def check_scene(scene: Scene, outline: Outline) -> None:
    """Raise CelstackError unless a model of these dimensions can render a scene.

    Checks shapes, and the indices of sprites and backgrounds. Reads values, which
    synchronizes with an accelerator.
    """
    if scene.sprite.dim() != 2:
        raise CelstackError(
            f"scene.sprite: has shape {tuple(scene.sprite.shape)}; it must be images x layers"
        )
    images, layers = scene.sprite.shape
    shapes = {
        "sprite": (images, layers),
        "sprite_params": (images, layers, outline.sprite_params),
        "layer_params": (images, layers, outline.layer_params),
        "occlusion": (images, layers, layers),
        "background": (images,),
        "background_params": (images, outline.background_params),
    }
    for name, values in tensor_fields(scene).items():
        if values.shape != shapes[name]:
            raise CelstackError(
                f"scene.{name}: has shape {tuple(values.shape)}; "
                f"with {images} x {layers} sprites, this model needs {shapes[name]}"
            )
    _check_indices("sprite", scene.sprite, outline.sprites, EMPTY)
    if scene.background is not None and outline.backgrounds:
        _check_indices("background", scene.background, outline.backgrounds, 0)
        if scene.background_params is None:
            raise CelstackError("scene.background_params: missing, beside a background")


def _check_indices(name: str, indices: Tensor, count: int, lowest: int) -> None:
    if indices.is_floating_point():
        raise CelstackError(f"scene.{name}: must be integers, not {indices.dtype}")
    wrong = indices[(indices < lowest) | (indices >= count)]
    if len(wrong):
        empty = f", or {EMPTY} for an empty layer" if lowest == EMPTY else ""
        raise CelstackError(
            f"scene.{name}: there is no {name} {int(wrong[0])}; "
            f"this model has {name}s 0 to {count - 1}{empty}"
        )
