"""The health check: finds parts of a model that have stopped to learn, or run away."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from celstack.chain import Chain
from celstack.curriculum import Phase
from celstack.findings import Finding
from celstack.model import Decomposer
from celstack.scene import EMPTY, Scene

CHECK_EVERY_STEPS = 500
SETTLING_STEPS = 200
"""A stage is given so many steps before predictions must differ between images."""
VANISHED_RATIO = 1e-2
EXPLODED_RATIO = 1e3
"""Weights below, and above, so many times their first root mean square are not healthy."""
MAX_WEIGHT = 100.0
"""No weight explodes below this root mean square, whatever it started with."""
MAX_GRADIENT = 100.0
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
        self.marks: dict[str, tuple[float, float]] = {}
        self.stage = 0

    @staticmethod
    def is_due(step: int, phase: Phase) -> bool:
        """Tell whether to look after this step: every so often, and at the end of a stage."""
        return step % CHECK_EVERY_STEPS == 0 or step == phase.end

    def forget_sprites(self, decomposer: Decomposer) -> None:
        """Called when sprites were reassigned, which changes them and their heads."""
        changed = {id(p) for p in decomposer.sprites.per_image()}
        if decomposer.predictor is not None:
            changed |= {id(p) for p, _ in decomposer.predictor.per_sprite()}
        for name, weight in decomposer.named_parameters():
            if id(weight) in changed:
                self.marks.pop(name, None)

    @torch.no_grad()
    def check(
        self,
        decomposer: Decomposer,
        scene: Scene,
        usage: Int[Tensor, " K"],
        phase: Phase,
        step: int,
    ) -> list[Finding]:
        """Return all findings after a step, whose gradients are still there."""
        if phase.number != self.stage:
            self.stage = phase.number
            self.marks.clear()
        findings = [*self._weights(decomposer), *_gradients(decomposer)]
        findings += self._changes(decomposer, phase)
        if step - phase.start >= SETTLING_STEPS and phase.stage.teacher is None:
            findings += _constant_transforms(decomposer, scene)
        if not decomposer.sprites_frozen:
            findings += _idle_sprites(decomposer, usage)
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
                if size < VANISHED_RATIO * first:
                    yield Finding("vanished-weights", f"{name}{place}", f"{size:.1e}")
                if size > max(EXPLODED_RATIO * first, MAX_WEIGHT):
                    yield Finding("exploding-weights", f"{name}{place}", f"{size:.1e}")

    def _changes(self, decomposer: Decomposer, phase: Phase) -> Iterator[Finding]:
        """Compare with the last check in the same stage."""
        frozen = {id(p) for p in decomposer.sprites.parameters()}
        frozen = frozen if phase.stage.freeze_sprites else set()
        factor = {"predictor": phase.stage.network_factor}
        for name, weight in decomposer.named_parameters():
            mark = (float(weight.double().sum()), float(weight.double().abs().sum()))
            before, self.marks[name] = self.marks.get(name), mark
            if before is None:
                continue
            rests = weight.grad is None or id(weight) in frozen
            rate = factor.get(name.partition(".")[0], phase.stage.prototype_factor)
            if rests and mark != before:
                change = f"by {abs(mark[0] - before[0]):.1e}"
                yield Finding("moved-at-rest", name, change)
            elif weight.grad is not None and weight.grad.any() and mark == before and rate:
                yield Finding("not-learning", name, f"gradient {_size(weight.grad):.1e}")


def _gradients(decomposer: Decomposer) -> Iterator[Finding]:
    for name, weight in decomposer.named_parameters():
        if weight.grad is None or not weight.numel():
            continue
        size = _size(weight.grad)
        if size == 0.0:
            yield Finding("zero-gradient", name, f"weights {_size(weight):.1e}")
        elif not size < MAX_GRADIENT:
            yield Finding("exploding-gradient", name, f"{size:.1e}")


def _constant_transforms(decomposer: Decomposer, scene: Scene) -> Iterator[Finding]:
    """Compare parameters between images that use the same sprite on the same layer."""
    filled = scene.sprite != EMPTY
    layers = torch.arange(scene.sprite.shape[1], device=scene.sprite.device)
    places = scene.sprite + decomposer.sprites.count * layers
    chains: list[tuple[str, Chain, Tensor, Tensor]] = [
        ("sprite", decomposer.sprite_chain, scene.sprite_params[filled], places[filled]),
        ("layer", decomposer.layer_chain, scene.layer_params[filled], places[filled]),
    ]
    if scene.background is not None and scene.background_params is not None:
        chain = decomposer.background_chain
        chains.append(("background", chain, scene.background_params, scene.background))
    for kind, chain, params, place in chains:
        parts = params.split(chain.sizes, dim=1)
        for transform, own, works in zip(chain, parts, chain.working(), strict=True):
            spread = _spread(own, place) if works and own.numel() else None
            if spread is not None and spread < MIN_SPREAD:
                name = f"transforms.{kind}.{transform.name}"
                yield Finding("constant-transform", name, f"they differ by {spread:.1e}")


def _spread(params: Float[Tensor, "n P"], group: Int[Tensor, " n"]) -> float | None:
    """Return the standard deviation within groups; None where none has two members."""
    params = params.double()
    _, group, counts = group.unique(return_inverse=True, return_counts=True)
    if len(params) == len(counts):
        return None
    means = params.new_zeros(len(counts), params.shape[1]).index_add_(0, group, params)
    means = means / counts[:, None]
    within = (params - means[group]).square().sum(0) / (len(params) - len(counts))
    return float(within.max().sqrt())


def _idle_sprites(decomposer: Decomposer, usage: Int[Tensor, " K"]) -> Iterator[Finding]:
    counts = usage.tolist()
    # Counted anew a moment ago, nothing can be said.
    enough = sum(counts) >= 10 * len(counts)
    for sprite, image in enumerate(decomposer.sprites.images()):
        if enough and not counts[sprite]:
            yield Finding("unused-sprite", f"sprite {sprite}", f"of {sum(counts)} uses")
        if float(image[-1].max()) < MIN_ALPHA:
            yield Finding("transparent-sprite", f"sprite {sprite}", "no mask")


def _sizes(weight: nn.Parameter, axis: int | None) -> Iterator[tuple[str, float]]:
    """Return the size of a weight; or that of each sprite's share of it."""
    if axis is None:
        yield "", _size(weight)
        return
    for sprite, share in enumerate(weight.unbind(axis)):
        yield f" of sprite {sprite}", _size(share)


def _size(values: Tensor) -> float:
    return float(values.detach().double().square().mean().sqrt()) if values.numel() else 0.0
