"""The health check: finds parts of a model that have stopped to learn, or run away."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from celstack.model.decomposer import Decomposer
from celstack.model.transform_chain import TransformChain
from celstack.recipe.schedule import Phase
from celstack.runs.findings import Finding
from celstack.scene import Scene

CHECK_EVERY_STEPS = 500
SETTLING_STEPS = 200
"""A stage is given so many steps before gradients and differences must be there."""
VANISHED_RATIO = 1e-2
EXPLODED_RATIO = 1e3
"""Weights below, and above, so many times their first root mean square are not healthy."""
MAX_WEIGHT = 100.0
"""No weight explodes below this root mean square, whatever it started with."""
MAX_GRADIENT = 100.0
MIN_RATE_FACTOR = 1e-2
"""Where a rate is below this share of the recipe's, weights need not be seen to change."""
MIN_USES_PER_SPRITE = 100
"""Fewer uses of all sprites together, divided by their number, say nothing of one of them."""
MIN_SPREAD = 1e-4
"""Predictions that differ less than this between images are the same for all of them."""
MIN_ALPHA = 0.05
"""A sprite whose mask is nowhere above this shows nothing."""


class HealthCheck:
    """Looks at weights, gradients and scenes of a run every so many steps.

    It depends on nothing but the step it looks at and the start of the run, so that a run
    that is resumed finds what an uninterrupted one does.
    """

    def __init__(self, decomposer: Decomposer) -> None:
        """Remember how large weights are; the model has learned nothing yet."""
        self.first_size = {n: _size(p) for n, p in decomposer.named_parameters()}
        self.before: dict[str, Tensor] = {}

    @staticmethod
    def is_due(step: int, phase: Phase) -> bool:
        """Tell whether to look after this step: every so often, and at the end of a stage."""
        return step % CHECK_EVERY_STEPS == 0 or step == phase.end

    def remember(self, decomposer: Decomposer) -> None:
        """Called before a step after which ``check`` is due: keep the weights."""
        named = decomposer.named_parameters()
        self.before = {name: weight.detach().clone() for name, weight in named}

    @torch.no_grad()
    def check(
        self,
        decomposer: Decomposer,
        scene: Scene,
        usage: Int[Tensor, " K"] | None,
        phase: Phase,
        step: int,
    ) -> list[Finding]:
        """Return all findings after a step, whose gradients are still there.

        ``usage`` counts how often sprites were used; None where unused ones are reassigned.
        """
        settled = step - phase.start >= SETTLING_STEPS
        findings = [*self._weights(decomposer), *_gradients(decomposer, settled)]
        findings += self._changes(decomposer, phase, step)
        if settled and phase.stage.teacher is None:
            findings += _constant_transforms(decomposer, scene)
        if not decomposer.sprites_frozen:
            findings += _idle_sprites(decomposer, usage)
            findings += _empty_layers(scene) if settled else ()
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
            # What starts at zero, or may be black, cannot vanish.
            first = 0.0 if id(weight) in prototypes else self.first_size[name]
            for place, size in _sizes(weight, axes.get(id(weight))):
                detail = f"root mean square {size:.1e}, at first {first:.1e}"
                if size < VANISHED_RATIO * first:
                    yield Finding("vanished-weights", f"{name}{place}", detail)
                if size > max(EXPLODED_RATIO * first, MAX_WEIGHT):
                    yield Finding("exploding-weights", f"{name}{place}", detail)

    def _changes(self, decomposer: Decomposer, phase: Phase, step: int) -> Iterator[Finding]:
        """Compare with the weights before the step."""
        frozen = {id(p) for p in decomposer.sprites.parameters()}
        frozen = frozen if phase.stage.freeze_sprites else set()
        schedule = phase.rate_factor(step - 1)
        for name, weight in decomposer.named_parameters():
            moved = not torch.equal(self.before[name], weight)
            rests = weight.grad is None or id(weight) in frozen
            if rests and moved:
                change = _size(weight - self.before[name])
                yield Finding("moved-at-rest", name, f"by {change:.1e}")
            elif weight.grad is not None and weight.grad.any() and not moved:
                network = name.startswith("predictor.")
                stage = phase.stage
                factor = stage.network_factor if network else stage.prototype_factor
                # A rate that a stage or its schedule has brought down is meant to be low.
                if factor * schedule > MIN_RATE_FACTOR:
                    size = f"gradient {_size(weight.grad):.1e}"
                    yield Finding("not-learning", name, size)


def _gradients(decomposer: Decomposer, settled: bool) -> Iterator[Finding]:
    """Find gradients that explode; and, once last layers have left zero, those that vanish."""
    for name, weight in decomposer.named_parameters():
        if weight.grad is None or not weight.numel():
            continue
        size = _size(weight.grad)
        if size == 0.0 and settled:
            yield Finding("zero-gradient", name, f"weights {_size(weight):.1e}")
        elif not size < MAX_GRADIENT:
            yield Finding("exploding-gradient", name, f"{size:.1e}")


def _constant_transforms(decomposer: Decomposer, scene: Scene) -> Iterator[Finding]:
    """Compare parameters between images that use the same sprite on the same layer."""
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
    """Return the standard deviation within groups; None where none has two members."""
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
    """Return the size of a weight; or that of each sprite's share of it."""
    if axis is None:
        yield "", _size(weight)
        return
    for sprite, share in enumerate(weight.unbind(axis)):
        yield f" of sprite {sprite}", _size(share)


def _size(values: Tensor) -> float:
    # Not in doubles, which some accelerators do not have.
    return float(values.detach().float().square().mean().sqrt()) if values.numel() else 0.0
