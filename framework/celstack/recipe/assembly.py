"""Assembly: everything a run is made of. Its fields are the sections of a recipe."""

from __future__ import annotations

from copy import deepcopy
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Interval
from attrs import field

from celstack.errors import CelstackError
from celstack.interfaces.compositor import Compositor
from celstack.interfaces.dataset import Dataset
from celstack.interfaces.metric import Metric
from celstack.interfaces.observer import Observer
from celstack.interfaces.predictor import Predictor
from celstack.interfaces.prototype import Prototype
from celstack.interfaces.selector import Selector
from celstack.interfaces.transform import Transform
from celstack.model.decomposer import Decomposer
from celstack.registry.validated import settings


@settings
class Transforms:
    """What may happen to sprites and backgrounds, in this order."""

    sprite: list[Transform] = field(factory=list)
    layer: list[Transform] = field(factory=list)
    background: list[Transform] = field(factory=list)


@settings
class Stage:
    """A stretch of training: how long, what is at work, what is frozen, how fast.

    A stage may explain images with a ``selector`` of its own, instead of the recipe's. That of
    the last stage is the one that is judged, and used when the run is opened again. With a
    ``teacher``, another selector, the predictor learns to say what the teacher finds, and all
    else rests. Learning rates rise linearly in the first ``warmup`` steps of the stage; with
    ``schedule = "cosine"`` they then fall to zero along half a cosine.
    """

    name: str = ""
    steps: Annotated[int, Ge(1)] | None = None
    epochs: Annotated[int, Ge(1)] | None = None
    transforms: list[str] | None = None
    freeze_sprites: bool = False
    reassign: bool = True
    selector: Selector | None = None
    teacher: Selector | None = None
    prototype_factor: Annotated[float, Ge(0)] = 1.0
    network_factor: Annotated[float, Ge(0)] = 1.0
    schedule: Literal["constant", "cosine"] = "constant"
    warmup: Annotated[int, Ge(0)] = 0

    def __attrs_post_init__(self) -> None:
        if (self.steps is None) == (self.epochs is None):
            raise CelstackError("a stage takes either steps or epochs")


@settings
class Training:
    """How all stages learn.

    ``betas`` is how much Adam keeps, at every step, of the gradients' mean and of their size.
    ``weight_decay``, of networks only, is "decoupled" from gradients, as in AdamW, or "coupled"
    to them, as in the authors' runs. Coupled, it decides wherever gradients are smaller than
    1e-6 times the weights: what is needed rarely, such as the head for the order of layers, is
    then gone after some hundred steps.
    Every ``reassign_every`` steps (0: never), sprites used less than ``reassign_below`` / K of
    the time start again: as what the selector misses, else as copies of the one used most.
    Every ``checkpoint_every`` steps all that was learned is saved. Encoders compute in the
    ``precision`` of 32 bits, or mixed with bf16 or fp16. Of several processes, each takes its
    share of a batch of ``batch_size``.
    """

    batch_size: Annotated[int, Ge(1)] = 32
    prototype_rate: Annotated[float, Gt(0)] = 1e-3
    encoder_rate: Annotated[float, Gt(0)] = 1e-3
    head_rate: Annotated[float, Gt(0)] = 1e-3
    weight_decay: Annotated[float, Ge(0)] = 1e-6
    decay: Literal["decoupled", "coupled"] = "decoupled"
    betas: tuple[
        Annotated[float, Interval(ge=0, lt=1)], Annotated[float, Interval(ge=0, lt=1)]
    ] = (
        0.9,
        0.999,
    )
    mask_noise: Annotated[float, Interval(ge=0, le=1)] = 0.4
    area_cost: Annotated[float, Ge(0)] = 0.0
    reassign_every: Annotated[int, Ge(0)] = 0
    reassign_below: Annotated[float, Interval(ge=0, le=1)] = 0.2
    workers: Annotated[int, Ge(0)] = 0
    checkpoint_every: Annotated[int, Ge(1)] = 500
    precision: Literal["32", "bf16", "fp16"] = "32"


@settings
class Evaluation:
    """On what a trained model is judged."""

    split: str = "test"
    images: Annotated[int, Ge(1)] = 320
    batch_size: Annotated[int, Ge(1)] = 32


@settings
class Assembly:
    """All parts of a run, and its settings. The seed governs all its randomness.

    ``published`` has figures to compare with, in percent, by method and metric; nothing of the
    run depends on it.
    """

    dataset: Dataset
    sprites: Prototype
    compositor: Compositor
    selector: Selector
    stages: list[Stage]
    transforms: Transforms = field(factory=Transforms)
    backgrounds: Prototype | None = None
    predictor: Predictor | None = None
    training: Training = field(factory=Training)
    evaluation: Evaluation = field(factory=Evaluation)
    metrics: list[Metric] = field(factory=list)
    observers: list[Observer] = field(factory=list)
    seed: Annotated[int, Interval(ge=0, lt=4294967296)] = 0
    description: str = ""
    published: dict[str, dict[str, float]] = field(factory=dict)

    def decomposer(self) -> Decomposer:
        """Put a model together from copies of the parts; it is not prepared yet.

        Copies, so that an assembly can be run again and each run has a model of its own.
        """
        return Decomposer(
            sprites=deepcopy(self.sprites),
            backgrounds=deepcopy(self.backgrounds),
            sprite_transforms=deepcopy(self.transforms.sprite),
            layer_transforms=deepcopy(self.transforms.layer),
            background_transforms=deepcopy(self.transforms.background),
            compositor=deepcopy(self.compositor),
            selector=deepcopy(self.selector),
            predictor=deepcopy(self.predictor),
        )
