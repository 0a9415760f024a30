"""Assembly: all parts and settings of a run. Its fields are the sections of a recipe."""

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
    """Chains of transforms of sprites, layers and backgrounds, applied in this order."""

    sprite: list[Transform] = field(factory=list)
    layer: list[Transform] = field(factory=list)
    background: list[Transform] = field(factory=list)


@settings
class Stage:
    """A stage of training: its length, active transforms, frozen parts and learning rates.

    ``transforms`` names the active transforms (default: all); the others stay at the identity
    and do not learn. A stage may use a ``selector`` of its own; that of the last stage is used
    for evaluation and when the run is opened again. With a ``teacher``, another selector, only
    the predictor learns, to predict the scenes that the teacher finds (distillation).
    ``prototype_factor`` multiplies the learning rate of sprites and backgrounds, and
    ``network_factor`` those of everything else that learns. Rates rise linearly
    during the first ``warmup`` steps; with ``schedule = "cosine"`` they then fall to zero along
    half a cosine.
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
    """Optimization settings of all stages.

    ``prototype_rate``, ``encoder_rate`` and ``head_rate`` are the learning rates of sprites and
    backgrounds, of encoders, and of everything else in the predictor. Transforms and
    compositors with parameters of their own state their rate themselves.
    ``betas`` are those of Adam. ``weight_decay`` applies to networks only; ``decay`` is
    "decoupled", as in AdamW, or "coupled" to the gradients, as in the authors' runs. Coupled
    decay dominates wherever gradients are smaller than ``weight_decay`` times the weights: the
    head that predicts the order of layers, which is rarely needed, vanishes within some hundred
    steps.
    Every ``reassign_every`` steps (0: never), sprites that are used less than
    ``reassign_below`` / K of the time are reinitialized: with what the selector proposes, else
    as copies of the most used sprite. A checkpoint is written every ``checkpoint_every`` steps.
    ``precision`` is that of encoders: 32 bits, or mixed with bf16 or fp16. With several
    processes, each takes a share of a batch of ``batch_size``.
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
    """The images that a trained model is evaluated on."""

    split: str = "test"
    images: Annotated[int, Ge(1)] = 320
    batch_size: Annotated[int, Ge(1)] = 32


@settings
class Validation:
    """Evaluation during training, every ``every`` steps (0: never), which does not affect it.

    Scores are logged, and passed to observers. With ``stop_on``, the name of a metric, the last
    stage ends when that score has not been better than before in ``patience`` evaluations in a
    row; earlier stages are completed. To select by the images of the final evaluation would
    flatter its scores; choose another ``split``.
    """

    every: Annotated[int, Ge(0)] = 0
    split: str = "train"
    images: Annotated[int, Ge(1)] = 320
    batch_size: Annotated[int, Ge(1)] = 32
    stop_on: str = ""
    patience: Annotated[int, Ge(1)] = 5


@settings
class Assembly:
    """All parts and settings of a run. All randomness is derived from ``seed``.

    ``published`` has figures to compare with, in percent, by method and metric; it does not
    affect the run.
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
    validation: Validation = field(factory=Validation)
    metrics: list[Metric] = field(factory=list)
    observers: list[Observer] = field(factory=list)
    seed: Annotated[int, Interval(ge=0, lt=4294967296)] = 0
    description: str = ""
    published: dict[str, dict[str, float]] = field(factory=dict)

    def decomposer(self) -> Decomposer:
        """Build a model from copies of the parts; it is not prepared yet.

        With copies, an assembly can be run more than once.
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

    def batch_sizes(self) -> dict[str, int]:
        """Return the splits that a run reads, and how many images at a time."""
        sizes = {"train": self.training.batch_size}
        evaluated = min(self.evaluation.images, self.evaluation.batch_size)
        sizes.setdefault(self.evaluation.split, evaluated)
        if self.validation.every:
            validated = min(self.validation.images, self.validation.batch_size)
            sizes.setdefault(self.validation.split, validated)
        return sizes
