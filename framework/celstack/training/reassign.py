"""Reassignment: sprites that nobody uses, or needs, start again as something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from celstack.evaluation.usage import Usage
from celstack.model.decomposer import Decomposer
from celstack.scene import Scene

if TYPE_CHECKING:
    from celstack.recipe.assembly import Stage, Training
    from celstack.training.run_state import Keeper

JITTER = 1e-4
"""How far a copy's own parameters are from the original's, so that the two can part."""


def reassigns(training: Training, stage: Stage) -> bool:
    """Tell whether a stage reassigns sprites that nobody uses."""
    return bool(training.reassign_every) and stage.reassign and stage.teacher is None


def reassign_when_due(
    training: Training,
    stage: Stage,
    keeper: Keeper,
    images: Float[Tensor, "B C H W"],
    scene: Scene,
) -> list[int]:
    """Count which sprites were used; when it is time, start those again that nobody uses."""
    keeper.usage.add(scene.sprite)
    if not reassigns(training, stage) or keeper.step % training.reassign_every:
        return []
    (images,), below = keeper.engine.processes.gather([images]), training.reassign_below
    again = reassign_unused(
        keeper.decomposer, keeper.optimizer, keeper.usage, below, (images, scene)
    )
    if again:
        keeper.engine.follow(keeper.decomposer, keeper.optimizer)
        keeper.log(reassigned=again)
    return again


def reassign_unused(
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    usage: Usage,
    below: float,
    last: tuple[Float[Tensor, "B C H W"], Scene] | None = None,
) -> list[int]:
    """Start unused sprites again, if sprites learn at all just now, and count anew.

    One of two twins is unused, too. Sprites begin as what the selector says the ``last``
    scenes miss of their images, and so do others that it gives up; where it cannot say, as
    copies of the sprite used most.
    """
    if decomposer.sprites_frozen:
        usage.reset()
        return []
    selector = decomposer.selector
    unused = usage.unused(below, relative_to_most=selector.empty_cost is not None)
    unused = _with_twins(unused, selector.find_duplicates(decomposer), usage.counts.tolist())
    missed = selector.propose_sprites(*last, decomposer, unused) if last else {}
    again = redraw(decomposer, optimizer, missed)
    left = [target for target in unused if target not in again]
    if left:
        reassign(decomposer, optimizer, left, usage.most_used())
    usage.reset()
    return sorted({*again, *left})


def _with_twins(
    unused: list[int], twins: list[tuple[int, int]], counts: list[int]
) -> list[int]:
    """Add the less used one of every two twins that are both there."""
    gone = set(unused)
    for pair in twins:
        if not gone.intersection(pair):
            gone.add(min(pair, key=lambda sprite: counts[sprite]))
    return sorted(gone)


def redraw(
    decomposer: Decomposer,
    optimizer: torch.optim.Optimizer,
    images: dict[int, Float[Tensor, "D h w"]],
) -> list[int]:
    """Draw sprites anew, and let the optimiser forget them; return those that could be."""
    drawn = [target for target in images if decomposer.sprites.redraw(target, images[target])]
    for parameter in decomposer.sprites.per_image() if drawn else ():
        for moment in _moments(optimizer, parameter):
            if moment.shape == parameter.shape:
                moment[drawn] = 0.0
    return drawn


def reassign(
    decomposer: Decomposer, optimizer: torch.optim.Optimizer, unused: list[int], source: int
) -> None:
    """Make copies of one sprite, with its heads and the optimiser's memory of both."""
    own = [(parameter, 0) for parameter in decomposer.sprites.per_image()]
    heads = decomposer.predictor.per_sprite() if decomposer.predictor is not None else []
    with torch.no_grad():
        for parameter, axis in [*own, *heads]:
            for target in unused:
                _copy(parameter, axis, source, target)
                for moment in _moments(optimizer, parameter):
                    if moment.shape == parameter.shape:
                        _copy(moment, axis, source, target)
        for parameter, _ in own:
            for target in unused:
                parameter[target] += JITTER * torch.randn(parameter[target].shape).to(parameter)


def _moments(optimizer: torch.optim.Optimizer, parameter: Tensor) -> list[Tensor]:
    """Return what the optimizer remembers of a parameter; nothing of what has only rested."""
    # Not state[parameter], which would remember an empty memory, and save it.
    known = optimizer.state.get(parameter, {})
    return [moment for moment in known.values() if torch.is_tensor(moment)]


def _copy(values: Float[Tensor, "*any"], axis: int, source: int, target: int) -> None:
    values.select(axis, target).copy_(values.select(axis, source))
