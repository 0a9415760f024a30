"""Neighbours: groups of images that are held together by chains of nearest neighbours."""

from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from celstack.sampling import canvas_points, look_up
from celstack_kit.prototypes.lookalikes import FAINT, NOISE, picture, plain
from celstack_kit.waiting import Waiting

SHIFTS = (0.0, -0.094, 0.094)
"""How far images are moved to be compared, in half canvases; at first, not at all."""
WIDTHS = (1.0, 0.85, 1.18)
NEAREST = 5
"""To how many others an image is tied, at least."""
UNLIKE = 0.4
"""By what share pairs may be less alike than most; those beyond are no neighbours."""
TIES = 0.5
"""All count as tied more often, by this share of the mean: no few images are a group alone."""
AXES = 64
"""Images are compared in this many directions in which they differ most."""
EDGE = 0.05
"""Where a window lets less through, nothing is compared."""
STARTS, ROUNDS = 100, 6
MOST = 2**24
"""About how many numbers are held at a time."""


def find_neighbours(
    images: Float[Tensor, "N C H W"], count: int, window: Float[Tensor, "H W"], inverted: bool
) -> Float[Tensor, "K C H W"]:
    """Return a picture of each of ``count`` groups of images, as seen through the window.

    Images are neighbours if one of them, moved or stretched a little, looks like the other
    but for gain, offset and slope of its light; with ``inverted``, its negative may. Groups
    are such that few neighbours are parted: those far from each other in a group need not
    look alike, if there are others in between. Those without neighbours are in no group. A
    picture is the mean of a group's images, moved to where they are most alike; with
    ``inverted``, pictures are negatives of each other's as little as can be.
    """
    maps = _maps(images)
    seen = _compare(_grey(images, window), maps, window)
    group = _divide(_nearest(seen, inverted), len(images), count)
    pictures = torch.stack(
        [
            _portrait(images[group == one], seen[group == one], maps, window, inverted)
            for one in range(count)
        ]
    )
    return _agree(pictures, window) if inverted else pictures


def _maps(like: Tensor) -> Float[Tensor, "T 2 3"]:
    """Say where to look in images, in several ways; the first is at rest."""
    ways = product(WIDTHS, SHIFTS, SHIFTS)
    return like.new_tensor([[[wide, 0, right], [0, 1, below]] for wide, right, below in ways])


def _grey(
    images: Float[Tensor, "N C H W"], window: Float[Tensor, "H W"]
) -> Float[Tensor, "N 1 H W"]:
    """Mix the channels of each image such that its contrast through the window is largest."""
    weights = window.square() / window.square().sum()
    away = (images - (images * weights).sum((2, 3), keepdim=True)).flatten(2)
    mixes = torch.linalg.eigh((away * weights.flatten()) @ away.mT).eigenvectors[..., -1:]
    # An axis has no sign of its own: what is lighter shall be lighter.
    mixes = torch.where(mixes.sum(1, keepdim=True) < 0, -mixes, mixes)
    return (mixes.mT @ images.flatten(2)).unflatten(2, images.shape[2:])


def _moved(
    images: Float[Tensor, "n C H W"], maps: Float[Tensor, "#n 2 3"]
) -> Float[Tensor, "n C m"]:
    height, width = images.shape[2:]
    points = canvas_points(height, width, like=images)
    pulled = points @ maps[:, :, :2].mT + maps[:, None, :, 2]
    return look_up(images, pulled.expand(len(images), -1, -1), "border")


def _compare(
    grey: Float[Tensor, "N 1 H W"], maps: Float[Tensor, "T 2 3"], window: Float[Tensor, "H W"]
) -> Float[Tensor, "N T q"]:
    """Move images in all ways; return them such that products tell how alike they are."""
    weights = window.flatten() / window.norm()
    near = (weights > EDGE * weights.max()).nonzero()[:, 0]
    weights = weights[near]
    height, width = window.shape
    points = canvas_points(height, width, like=grey)[near]
    light = torch.cat([torch.ones_like(points[:, :1]), points], dim=1) * weights[:, None]
    light = torch.linalg.qr(light).Q

    def look(one: Tensor) -> Float[Tensor, "N m"]:
        seen = _moved(grey, one[None])[:, 0, near] * weights
        seen = seen - (seen @ light) @ light.mT
        return seen / seen.norm(dim=1, keepdim=True).clamp_min(FAINT)

    # Where images differ at rest is where they differ when moved, but for a little.
    _, _, axes = torch.pca_lowrank(look(maps[0]), min(AXES, len(grey), len(near)), center=False)
    return torch.stack([look(one) @ axes for one in maps], dim=1)


def _nearest(
    seen: Float[Tensor, "N T q"], inverted: bool
) -> tuple[Int[Tensor, " e"], Int[Tensor, " e"]]:
    """Return all pairs of an image and one of its nearest, which is as it is."""
    rest = seen[:, 0].mT.contiguous()
    found = []
    count = min(NEAREST, len(seen) - 1)
    parts = torch.arange(len(seen)).split(max(1, MOST // (len(seen) * seen.shape[1])))
    with Waiting("sprites: finding neighbours", len(seen)) as waiting:
        for some in parts:
            alike = (seen[some].flatten(0, 1) @ rest).unflatten(0, (len(some), -1))
            best = (alike.abs() if inverted else alike).amax(1)
            best[torch.arange(len(some)), some] = -torch.inf
            found.append(best.topk(count))
            waiting.advance(len(some))
    alike, nearest = (torch.cat(each).flatten() for each in zip(*found, strict=True))
    most = alike.median() if len(alike) else torch.zeros(())
    near = alike >= most - UNLIKE * most.abs()
    return torch.arange(len(seen)).repeat_interleave(count)[near], nearest[near]


def _divide(
    pairs: tuple[Int[Tensor, " e"], Int[Tensor, " e"]], size: int, count: int
) -> Int[Tensor, " N"]:
    """Divide so many images such that few pairs are parted, by their normalised cut.

    That is k-means of the eigenvectors of the graph, each image's values as a direction. An
    image in no pair is in no group: -1.
    """
    from scipy.cluster.vq import kmeans, vq
    from scipy.sparse import coo_array, diags_array
    from scipy.sparse.linalg import eigsh

    if size <= count:
        return torch.arange(size)
    tied, numbers = torch.cat(pairs).unique(return_inverse=True)
    if len(tied) <= count:
        tied, numbers = torch.arange(size), torch.cat(pairs)
    one, other = numbers.view(2, -1).numpy()
    shape = (len(tied), len(tied))
    ties = coo_array((torch.ones(len(one)).double().numpy(), (one, other)), shape)
    ties = (ties + ties.T).tocsr()
    degree = ties.sum(axis=1)
    scale = diags_array((degree + TIES * degree.mean()) ** -0.5)
    begin = torch.rand(len(tied)).double().numpy()
    vectors = torch.from_numpy(eigsh(scale @ ties @ scale, count, which="LA", v0=begin)[1])
    places = normalize(vectors, dim=1).numpy()
    seed = int(torch.randint(2**31, ()))
    centres, _ = kmeans(places, count, iter=STARTS, seed=seed)
    group = torch.full((size,), -1)
    group[tied] = torch.from_numpy(vq(places, centres)[0]).long()
    return group


def _portrait(
    images: Float[Tensor, "n C H W"],
    seen: Float[Tensor, "n T q"],
    maps: Float[Tensor, "T 2 3"],
    window: Float[Tensor, "H W"],
    inverted: bool,
) -> Float[Tensor, "C H W"]:
    """Return the mean of images, moved, or shown as negatives, to be most alike."""
    if not len(images):
        return torch.full(images.shape[1:], 0.5)
    rest, each = seen[:, 0], torch.arange(len(seen))
    centre = torch.linalg.eigh(rest.mT @ rest).eigenvectors[:, -1] if inverted else rest.mean(0)
    for _ in range(ROUNDS):
        alike = seen @ normalize(centre, dim=0)
        way = (alike.abs() if inverted else alike).argmax(1)
        alike = alike[each, way] if inverted else alike[each, way].clamp_min(0)
        # As in lookalikes: who is explained well pulls most.
        pull = alike / (1 + NOISE - alike.square())
        centre = pull @ seen[each, way]
    moved = plain(_moved(images, maps[way]).unflatten(2, images.shape[2:]), window)
    mean = (pull[:, None, None, None] * moved).sum(0, keepdim=True)
    return picture(plain(mean, window))[0]


def _agree(
    pictures: Float[Tensor, "K C H W"], window: Float[Tensor, "H W"]
) -> Float[Tensor, "K C H W"]:
    """Show some as their negatives, such that all are as alike as they can be.

    A group of images and their negatives has no sign of its own. If all pictures have the
    same, what inverts one of them for an image inverts each.
    """
    level = (plain(pictures, window) * window).flatten(1)
    # How much each has of what they share: the largest part is counted as it is.
    shared = torch.linalg.eigh(level @ level.mT).eigenvectors[:, -1]
    shared = shared * shared.sum().sign()
    return torch.where((shared < 0)[:, None, None, None], 1 - pictures, pictures)
