"""Lookalikes: groups of images that are the same but for the gain and offset of colors."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from celstack.progress import WorkProgress

STARTS = 200
"""Groups depend on how they begin: this is how often they begin anew."""
ROUNDS = 20
AXES = 64
"""Images are compared in this many directions in which they differ most."""
FAINT = 0.02
"""Images of less contrast count as if they had that much."""
NOISE = 0.05
"""What no group explains of an image: a group gains nothing from explaining it better."""
CONTRAST, BRIGHTEST = 0.2, 2.5
"""How strong the images of groups are made, around gray."""


def find_lookalikes(
    images: Float[Tensor, "N C H W"], count: int, window: Float[Tensor, "H W"], inverted: bool
) -> Float[Tensor, "K C H W"]:
    """Return the mean image of each of ``count`` groups, as seen through the window.

    Means are of images whose channels have been made to agree in mean and contrast, there;
    with ``inverted``, negatives count as the same. Groups are those that explain most, by
    the logarithm of what is left of each image: one that no group explains does not matter
    much. Of all beginnings the best is kept.
    """
    level = plain(images, window)
    seen = (level * window).flatten(1)
    seen = seen / seen.norm(dim=1, keepdim=True).clamp_min(FAINT)
    _, _, axes = torch.pca_lowrank(seen, min(AXES, *seen.shape), center=False)
    seen = seen @ axes
    tries = []
    with WorkProgress("sprites: finding lookalikes", STARTS) as waiting:
        for _ in range(STARTS):
            tries.append(_group(seen, count, inverted))
            waiting.advance(1)
    centers = min(tries, key=lambda one: one[0])[1]
    alike = seen @ centers.mT
    group = (alike.abs() if inverted else alike).argmax(1)
    signs = alike.gather(1, group[:, None]).sign() if inverted else torch.ones(len(seen), 1)
    members = one_hot(group, count).to(seen)
    means = (members * signs).mT @ level.flatten(1)
    means = means / members.sum(0).clamp_min(1)[:, None]
    return picture(means.view(count, *images.shape[1:]))


def picture(level: Float[Tensor, "K C H W"]) -> Float[Tensor, "K C H W"]:
    """Make pictures of what has mean 0 and contrast 1."""
    return 0.5 + CONTRAST * level.clamp(-BRIGHTEST, BRIGHTEST)


def plain(
    images: Float[Tensor, "N C H W"], window: Float[Tensor, "H W"]
) -> Float[Tensor, "N C H W"]:
    """Give all channels mean 0 and contrast 1, as seen through the window."""
    weights = window.square() / window.square().sum()
    away = images - (images * weights).sum((2, 3), keepdim=True)
    contrast = (away.square() * weights).sum((2, 3), keepdim=True).sqrt()
    return away / (contrast + FAINT)


def _group(
    seen: Float[Tensor, "N q"], count: int, inverted: bool
) -> tuple[float, Float[Tensor, "K q"]]:
    """Begin with any images; return how much is left unexplained, and the centers."""
    some = torch.randint(len(seen), (count,))
    if count <= len(seen):
        some = torch.randperm(len(seen))[:count]
    centers = _unit(seen[some])
    for _ in range(ROUNDS):
        alike = seen @ centers.mT
        alike = alike if inverted else alike.clamp_min(0)
        best, group = alike.abs().max(1)
        # The slope of the logarithm: who is explained well pulls most.
        pull = alike.gather(1, group[:, None]) / (1 + NOISE - best.square())[:, None]
        moved = (one_hot(group, count).to(seen) * pull).mT @ seen
        # A group that nobody joins stays.
        centers = torch.where(moved.norm(dim=1, keepdim=True) > 0, _unit(moved), centers)
    alike = seen @ centers.mT
    best = (alike.abs() if inverted else alike.clamp_min(0)).amax(1)
    return float((1 + NOISE - best.square()).log().mean()), centers


def _unit(vectors: Float[Tensor, "n q"]) -> Float[Tensor, "n q"]:
    return vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-12)
