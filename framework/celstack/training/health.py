"""The health check: find parts of a model that have stopped learning, or diverge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from celstack.model.decomposer import Decomposer
from celstack.model.transform_chain import TransformChain
from celstack.recipe.schedule import ScheduledStage
from celstack.runs.findings import Finding
from celstack.scene import Scene

CHECK_EVERY_STEPS = 500
MIN_STAGE_STEPS = 200
"""Zero gradients and constant predictions are not reported earlier in a stage."""
VANISHED_RATIO = 1e-2
EXPLODED_RATIO = 1e3
"""The root mean square of weights may shrink or grow by these factors during a run."""
MAX_WEIGHT = 100.0
"""Weights with a root mean square below this have not exploded, whatever their first one."""
MAX_GRADIENT = 100.0
"""The root mean square of a gradient above which it explodes."""
MIN_RATE_FACTOR = 1e-2
"""Weights need not change visibly if their learning rate is reduced to less than this."""
MIN_USES_PER_SPRITE = 100
"""Unused sprites are not reported before sprites were used so often on average."""
MIN_SPREAD = 1e-4
"""Parameters whose standard deviation over images is less than this are constant."""
MIN_ALPHA = 0.05
"""A sprite whose alpha is nowhere above this is transparent."""


class HealthCheck:
    """Checks weights, gradients and scenes every ``CHECK_EVERY_STEPS`` steps of a run.

    It depends only on the initial model and the current step, so that a resumed run has the
    same findings as an uninterrupted one.
    """

    def __init__(self, decomposer: Decomposer) -> None:
        """Store the root mean square of all weights of an untrained model."""
        self.first_size = {n: _size(p) for n, p in decomposer.named_parameters()}
        self.before: dict[str, Tensor] = {}

    @staticmethod
    def is_due(step: int, scheduled: ScheduledStage) -> bool:
        """Return whether to check after this step: regularly, and at the end of a stage."""
        return step % CHECK_EVERY_STEPS == 0 or step == scheduled.end

    def remember(self, decomposer: Decomposer) -> None:
        """Copy the weights; call this before a step after which ``check`` is due."""
        named = decomposer.named_parameters()
        self.before = {name: weight.detach().clone() for name, weight in named}

    @torch.no_grad()
    def check(
        self,
        decomposer: Decomposer,
        scene: Scene,
        usage: Int[Tensor, " K"] | None,
        scheduled: ScheduledStage,
        step: int,
        rate_factors: Mapping[int, float],
    ) -> list[Finding]:
        """Return all findings after a step; its gradients must not be cleared yet.

        Args:
            decomposer: The model after the step.
            scene: The scenes of the step's batch.
            usage: How often each sprite was used; None if unused ones are reassigned.
            scheduled: The stage of the step.
            step: The number of the step.
            rate_factors: What the recipe's learning rate was multiplied by in the step, by
                the id of each parameter that has one.
        """
        past_start = step - scheduled.start >= MIN_STAGE_STEPS
        findings = [*self._weights(decomposer), *_gradients(decomposer, past_start)]
        findings += self._changes(decomposer, scheduled, rate_factors)
        if past_start and scheduled.stage.teacher is None:
            findings += _constant_transforms(decomposer, scene)
        if not decomposer.sprites_frozen:
            findings += _idle_sprites(decomposer, usage)
            findings += _empty_layers(scene) if past_start else ()
        self.before = {}
        return findings

    def _weights(self, decomposer: Decomposer) -> Iterator[Finding]:
        prototypes = {id(p) for p in decomposer.sprites.parameters()}
        if decomposer.backgrounds is not None:
            prototypes |= {id(p) for p in decomposer.backgrounds.parameters()}
        axes = {}
        if decomposer.predictor is not None:
            axes = {id(p): axis for p, axis in decomposer.predictor.per_sprite()}
        for name, weight in decomposer.named_parameters():
            # Weights that start at zero cannot vanish; prototypes may turn black.
            first = 0.0 if id(weight) in prototypes else self.first_size[name]
            for place, size in _sizes(weight, axes.get(id(weight))):
                detail = f"root mean square {size:.1e}, at first {first:.1e}"
                if size < VANISHED_RATIO * first:
                    yield Finding("vanished-weights", f"{name}{place}", detail)
                if size > max(EXPLODED_RATIO * first, MAX_WEIGHT):
                    yield Finding("exploding-weights", f"{name}{place}", detail)

    def _changes(
        self, decomposer: Decomposer, scheduled: ScheduledStage, factors: Mapping[int, float]
    ) -> Iterator[Finding]:
        """Find weights that changed although frozen, or did not change despite a gradient."""
        frozen = {id(p) for p in decomposer.sprites.parameters()}
        frozen = frozen if scheduled.stage.freeze_sprites else set()
        for name, weight in decomposer.named_parameters():
            moved = not torch.equal(self.before[name], weight)
            rests = weight.grad is None or id(weight) in frozen
            if rests and moved:
                change = _size(weight - self.before[name])
                yield Finding("moved-at-rest", name, f"by {change:.1e}")
            # Stages, schedules and observers may reduce rates to almost zero on purpose.
            learns = factors.get(id(weight), 1.0) > MIN_RATE_FACTOR
            if learns and not moved and weight.grad is not None and weight.grad.any():
                size = f"gradient {_size(weight.grad):.1e}"
                yield Finding("not-learning", name, size)


def _gradients(decomposer: Decomposer, past_start: bool) -> Iterator[Finding]:
    """Find exploding gradients; and zero ones, once zero-initialized last layers have moved."""
    for name, weight in decomposer.named_parameters():
        if weight.grad is None or not weight.numel():
            continue
        size = _size(weight.grad)
        if size == 0.0 and past_start:
            yield Finding("zero-gradient", name, f"weights {_size(weight):.1e}")
        elif not size < MAX_GRADIENT:
            yield Finding("exploding-gradient", name, f"{size:.1e}")


def _constant_transforms(decomposer: Decomposer, scene: Scene) -> Iterator[Finding]:
    """Find transforms whose parameters are equal in all images, per sprite and layer."""
    filled = scene.filled
    layers = torch.arange(scene.sprite.shape[1], device=scene.sprite.device)
    places = scene.sprite + decomposer.sprites.count * layers
    chains: list[tuple[str, TransformChain, Tensor, Tensor]] = [
        ("sprite", decomposer.sprite_chain, scene.sprite_params[filled], places[filled]),
        ("layer", decomposer.layer_chain, scene.layer_params[filled], places[filled]),
    ]
    if scene.background is not None and scene.background_params is not None:
        chain = decomposer.background_chain
        chains.append(("background", chain, scene.background_params, scene.background))
    for kind, chain, params, place in chains:
        parts = params.split(chain.sizes, dim=1)
        for transform, own, works in zip(chain, parts, chain.active, strict=True):
            spread = _spread(own, place) if works and own.numel() else None
            if spread is not None and spread < MIN_SPREAD:
                name = f"transforms.{kind}.{transform.name}"
                yield Finding("constant-transform", name, f"they differ by {spread:.1e}")


def _spread(params: Float[Tensor, "n P"], group: Int[Tensor, " n"]) -> float | None:
    """Return the standard deviation within groups; None if no group has two members."""
    _, group, counts = group.unique(return_inverse=True, return_counts=True)
    if len(params) == len(counts):
        return None
    means = params.new_zeros(len(counts), params.shape[1]).index_add_(0, group, params)
    means = means / counts[:, None]
    within = (params - means[group]).square().sum(0) / (len(params) - len(counts))
    return float(within.max().sqrt())


def _idle_sprites(decomposer: Decomposer, usage: Int[Tensor, " K"] | None) -> Iterator[Finding]:
    counts = usage.tolist() if usage is not None else []
    enough = bool(counts) and sum(counts) >= MIN_USES_PER_SPRITE * len(counts)
    for sprite, image in enumerate(decomposer.sprites.images()):
        if enough and not counts[sprite]:
            detail = f"selected 0 of {sum(counts)} times"
            yield Finding("unused-sprite", f"sprite {sprite}", detail)
        greatest = float(image[-1].max())
        if greatest < MIN_ALPHA:
            detail = f"greatest alpha {greatest:.2f}"
            yield Finding("transparent-sprite", f"sprite {sprite}", detail)


def _empty_layers(scene: Scene) -> Iterator[Finding]:
    empty = (~scene.filled).all(0)
    for layer in empty.nonzero()[:, 0].tolist():
        detail = f"in all {len(scene)} images of a batch"
        yield Finding("empty-layer", f"layer {layer}", detail)


def _sizes(weight: nn.Parameter, axis: int | None) -> Iterator[tuple[str, float]]:
    """Return the size of a weight, or that of each sprite's slice along ``axis``."""
    if axis is None:
        yield "", _size(weight)
        return
    for sprite, own in enumerate(weight.unbind(axis)):
        yield f" of sprite {sprite}", _size(own)


def _size(values: Tensor) -> float:
    """Return the root mean square; 0 of nothing."""
    # Not in float64, which some accelerators do not support.
    return float(values.detach().float().square().mean().sqrt()) if values.numel() else 0.0
