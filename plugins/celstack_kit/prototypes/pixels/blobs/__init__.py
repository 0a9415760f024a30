"""Sprites from blobs: isolated objects in front of the background, grouped by looks."""

from collections.abc import Collection, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from celstack import CelstackError
from celstack.progress import WorkProgress
from celstack_kit.prototypes.pixels.blobs.descriptors import PATCH_SIZE, describe
from celstack_kit.prototypes.pixels.blobs.foreground import find_foreground
from celstack_kit.prototypes.pixels.blobs.groups import group, kmeans_tries
from celstack_kit.prototypes.pixels.blobs.isolated import Blob, find_isolated
from celstack_kit.prototypes.pixels.blobs.patches import Framing

TURNS = 24
"""Number of angles at which blobs are compared, if they are turned."""
ALIGNMENTS = 4
CONTENT_SHARE = 0.8
"""Share of a sprite's longer side that objects fill, if their sizes vary."""
MIN_BLOBS_PER_SPRITE = 4
MAX_BLOBS = 2500
"""Time and memory of grouping grow with the square of their number, or faster."""
BRIGHTEST = 0.95
"""Brightest level of sprites whose color varies: gains of colors are at most 1."""


def blob_sprites(
    images: Float[Tensor, "N C H W"],
    count: int,
    views: int,
    size: tuple[int, int],
    varying: Collection[str],
) -> Float[Tensor, "K D h w"]:
    """Return sprites, the mean looks of isolated objects: ``views`` for each of ``count``.

    Args:
        images: The images.
        count: Number of groups of objects.
        views: Number of sprites for each group, which are clusters within it.
        size: Height and width of the sprites.
        varying: What may differ between equal objects: "angle", "size", "color".
    """
    random = np.random.default_rng(int(torch.randint(2**31, ())))
    with WorkProgress("sprites: finding blobs", 3) as progress:
        blobs = find_isolated(images.numpy(), find_foreground(images))
        if len(blobs) > MAX_BLOBS:
            some = np.sort(random.choice(len(blobs), MAX_BLOBS, replace=False))
            blobs = [blobs[index] for index in some]
        progress.advance(1)
        needed = MIN_BLOBS_PER_SPRITE * count * views
        if len(blobs) < needed:
            raise CelstackError(
                f'start = "blobs": only {len(blobs)} isolated objects are in the sample of '
                f"{len(images)} images, and {count * views} sprites need {needed}; take fewer "
                'sprites or views, or another start, such as "constant"'
            )
        framing = Framing.of(blobs, "size" in varying, TURNS if "angle" in varying else 1)
        patches = np.stack([framing.cut(blob, PATCH_SIZE, 1.0, blurred=True) for blob in blobs])
        vectors = describe(patches, with_color="color" not in varying)
        progress.advance(1)
        groups = group(vectors, count, random)
        sprites = []
        for number in range(count):
            own = np.flatnonzero(groups == number)
            turn = _align(vectors[own])
            view = _views(vectors[own, turn], views, random)
            for which in range(views):
                some = view == which
                members = [blobs[index] for index in own[some]]
                sprites.append(_mean(members, turn[some], framing, size, "color" in varying))
        progress.advance(1)
    return torch.from_numpy(np.stack(sprites)).float()


def _align(vectors: Float[np.ndarray, "n T q"]) -> Int[np.ndarray, " n"]:
    """Return the variant of each vector that is nearest to the mean of all, aligned."""
    each = np.arange(len(vectors))
    variant = np.zeros(len(vectors), np.int64)
    center = vectors[0, 0]
    for _ in range(ALIGNMENTS if vectors.shape[1] > 1 else 0):
        variant = ((vectors - center) ** 2).sum(2).argmin(1)
        center = vectors[each, variant].mean(0)
    return variant


def _views(
    vectors: Float[np.ndarray, "n q"], views: int, random: np.random.Generator
) -> Int[np.ndarray, " n"]:
    """Return the view of each member of a group; none is empty if there are enough."""
    if views == 1 or len(vectors) <= views:
        return np.arange(len(vectors)) % views
    tries = kmeans_tries(vectors, views, random)
    return max(tries, key=lambda one: np.bincount(one[1], minlength=views).min())[1]


def _mean(
    blobs: Sequence[Blob],
    turns: Int[np.ndarray, " n"],
    framing: Framing,
    size: tuple[int, int],
    gray: bool,
) -> Float[np.ndarray, "..."]:
    """Return the mean of blobs in their common frame: colors and mask.

    If colors vary, it is the mean brightness, relative to the median of each blob.
    """
    share = CONTENT_SHARE if framing.unit is None else framing.unit / max(size)
    cuts = [
        framing.cut(blob, size, share, blurred=False)[turn]
        for blob, turn in zip(blobs, turns, strict=True)
    ]
    *_, channels, _, _ = np.shape(cuts)
    mean = np.mean([_relative_light(cut) if gray else cut for cut in cuts], axis=0)
    if gray:
        light = mean[0] * (BRIGHTEST / mean[0][mean[1] > 0.5].max(initial=1e-3))
        mean = np.stack([*[light.clip(0, 1)] * (channels - 1), mean[1]])
    return mean


def _relative_light(cut: Float[np.ndarray, "D h w"]) -> Float[np.ndarray, "..."]:
    """Return the brightness over its median in the blob, and the mask."""
    light = cut[:-1].max(0)
    inside = light[cut[-1] > 0.5]
    return np.stack([light / max(float(np.median(inside)), 1e-2), cut[-1]])
