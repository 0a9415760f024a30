"""Trial: which drawings would make the best sprites."""

from copy import deepcopy
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack import EMPTY, Decomposer


class Drawings(NamedTuple):
    """What may become sprites, and the images that it was drawn from."""

    looks: Float[Tensor, "n D h w"]
    source: Int[Tensor, " n"]


def choose_drawings(
    drawings: Drawings,
    images: Float[Tensor, "B C H W"],
    decomposer: Decomposer,
    unused: list[int],
) -> Float[Tensor, "m D h w"]:
    """Return, for unused sprites in turn, the drawings with which images are explained best.

    Whatever is drawn explains the image that it was drawn from, however little it is an
    object that recurs; so it is tried on all others.
    """
    looks, source = drawings
    trial, left, chosen = deepcopy(decomposer), list(range(len(looks))), []
    for target in unused[: len(left)]:
        without = _try(trial, target, torch.zeros_like(looks[0]), images)
        saved = torch.stack([without - _try(trial, target, looks[n], images) for n in left])
        saved.scatter_(1, source[left, None], 0.0)
        chosen.append(left.pop(int(saved.sum(1).argmax())))
        trial.sprites.redraw(target, looks[chosen[-1]])
    return looks[chosen]


def _try(
    trial: Decomposer,
    target: int,
    drawing: Float[Tensor, "D h w"],
    images: Float[Tensor, "B C H W"],
) -> Float[Tensor, " B"]:
    """Return what explaining each image costs with this sprite."""
    trial.sprites.redraw(target, drawing)
    scene = trial.explain(images)
    errors = (trial.render(scene).image - images).square().flatten(1).mean(1)
    return errors + (trial.price or 0.0) * (scene.sprite != EMPTY).sum(1)
