"""Spectral clusters of images: the normalized cut of their nearest-neighbor graph."""

from itertools import product

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from celstack.geometry import pixel_centers, sample_points
from celstack.progress import WorkProgress
from celstack_kit.prototypes.pixels.invariant_kmeans import (
    MIN_CONTRAST,
    NOISE,
    normalize_channels,
    to_image,
)

SHIFTS = (0.0, -0.094, 0.094)
"""Shifts under which images are compared, in half canvases; the first is none."""
STRETCHES = (1.0, 0.85, 1.18)
"""Horizontal scales under which images are compared; the first is none."""
NUM_NEIGHBORS = 5
"""Number of nearest neighbors of an image in the graph."""
MAX_DISSIMILARITY = 0.4
"""Pairs less similar than the median by more than this share of it are not connected."""
DEGREE_REGULARIZATION = 0.5
"""Share of the mean degree added to all degrees, against clusters of few images."""
PRINCIPAL_AXES = 64
"""Images are compared in their projection onto this many principal axes."""
MIN_WINDOW_WEIGHT = 0.05
"""Pixels at which the window has a smaller share of its maximum are left out."""
KMEANS_RESTARTS, ALIGNMENT_ITERATIONS = 100, 6
MAX_CHUNK_VALUES = 2**24
"""Similarities are computed in chunks of about this many values."""


def spectral_clusters(
    images: Float[Tensor, "N C H W"], count: int, window: Float[Tensor, "H W"], inverted: bool
) -> Float[Tensor, "K C H W"]:
    """Cluster images spectrally, and return the aligned mean image of each cluster.

    The similarity of two images is their correlation under the window, maximized over small
    shifts and stretches of one of them, after removing gain, offset and linear gradients.
    Clusters are a normalized cut of the graph of nearest neighbors, so images far apart may
    belong together if there are others in between. Images without edges are in no cluster.

    Args:
        images: The images.
        count: Number of clusters.
        window: Weights of the pixels.
        inverted: Whether an image and its negative are similar. All means then have the
            same polarity, as far as they have anything in common.
    """
    maps = _affine_maps(images)
    vectors = _warped_vectors(_to_gray(images, window), maps, window)
    cluster = _normalized_cut(_nearest_neighbors(vectors, inverted), len(images), count)
    members = [cluster == one for one in range(count)]
    means = [
        _aligned_mean(images[own], vectors[own], maps, window, inverted) for own in members
    ]
    return _align_polarity(torch.stack(means), window) if inverted else torch.stack(means)


def _affine_maps(like: Tensor) -> Float[Tensor, "T 2 3"]:
    """Return all combinations of stretches and shifts; the first is the identity."""
    ways = product(STRETCHES, SHIFTS, SHIFTS)
    return like.new_tensor([[[wide, 0, right], [0, 1, below]] for wide, right, below in ways])


def _to_gray(
    images: Float[Tensor, "N C H W"], window: Float[Tensor, "H W"]
) -> Float[Tensor, "N 1 H W"]:
    """Project the channels of each image onto their first principal axis under the window."""
    weights = window.square() / window.square().sum()
    centered = (images - (images * weights).sum((2, 3), keepdim=True)).flatten(2)
    mixes = torch.linalg.eigh((centered * weights.flatten()) @ centered.mT).eigenvectors[
        ..., -1:
    ]
    # The sign of an eigenvector is arbitrary: keep bright pixels bright.
    mixes = torch.where(mixes.sum(1, keepdim=True) < 0, -mixes, mixes)
    return (mixes.mT @ images.flatten(2)).unflatten(2, images.shape[2:])


def _warp(
    images: Float[Tensor, "n C H W"], maps: Float[Tensor, "#n 2 3"]
) -> Float[Tensor, "n C m"]:
    height, width = images.shape[2:]
    points = pixel_centers(height, width, like=images)
    pulled = points @ maps[:, :, :2].mT + maps[:, None, :, 2]
    return sample_points(images, pulled.expand(len(images), -1, -1), "border")


def _warped_vectors(
    gray: Float[Tensor, "N 1 H W"], maps: Float[Tensor, "T 2 3"], window: Float[Tensor, "H W"]
) -> Float[Tensor, "N T q"]:
    """Return unit vectors of all warped images, whose dot products are correlations."""
    weights = window.flatten() / window.norm()
    near = (weights > MIN_WINDOW_WEIGHT * weights.max()).nonzero()[:, 0]
    weights = weights[near]
    height, width = window.shape
    points = pixel_centers(height, width, like=gray)[near]
    planes = torch.cat([torch.ones_like(points[:, :1]), points], dim=1) * weights[:, None]
    planes = torch.linalg.qr(planes).Q

    def unit_vectors(matrix: Tensor) -> Float[Tensor, "N m"]:
        values = _warp(gray, matrix[None])[:, 0, near] * weights
        values = values - (values @ planes) @ planes.mT
        return values / values.norm(dim=1, keepdim=True).clamp_min(MIN_CONTRAST)

    # Principal axes of the unwarped images serve for all warps, which are small.
    num_axes = min(PRINCIPAL_AXES, len(gray), len(near))
    _, _, axes = torch.pca_lowrank(unit_vectors(maps[0]), num_axes, center=False)
    return torch.stack([unit_vectors(matrix) @ axes for matrix in maps], dim=1)


def _nearest_neighbors(
    vectors: Float[Tensor, "N T q"], inverted: bool
) -> tuple[Int[Tensor, " e"], Int[Tensor, " e"]]:
    """Return the edges from each image, warped in any way, to its nearest unwarped ones."""
    unwarped = vectors[:, 0].mT.contiguous()
    found = []
    count = min(NUM_NEIGHBORS, len(vectors) - 1)
    chunk = max(1, MAX_CHUNK_VALUES // (len(vectors) * vectors.shape[1]))
    with WorkProgress("sprites: finding neighbors", len(vectors)) as progress:
        for some in torch.arange(len(vectors)).split(chunk):
            products = vectors[some].flatten(0, 1) @ unwarped
            products = products.unflatten(0, (len(some), -1))
            best = (products.abs() if inverted else products).amax(1)
            best[torch.arange(len(some)), some] = -torch.inf
            found.append(best.topk(count))
            progress.advance(len(some))
    similarity, nearest = (torch.cat(each).flatten() for each in zip(*found, strict=True))
    usual = similarity.median() if len(similarity) else torch.zeros(())
    near = similarity >= usual - MAX_DISSIMILARITY * usual.abs()
    return torch.arange(len(vectors)).repeat_interleave(count)[near], nearest[near]


def _normalized_cut(
    edges: tuple[Int[Tensor, " e"], Int[Tensor, " e"]], size: int, count: int
) -> Int[Tensor, " N"]:
    """Return the cluster of each of ``size`` images by a normalized cut of the graph.

    It is approximated by k-means of the rows, as unit vectors, of the leading eigenvectors of
    the normalized adjacency matrix. Images without edges have cluster -1.
    """
    from scipy.cluster.vq import kmeans, vq
    from scipy.sparse import coo_array, diags_array
    from scipy.sparse.linalg import eigsh

    if size <= count:
        return torch.arange(size)
    connected, numbers = torch.cat(edges).unique(return_inverse=True)
    if len(connected) <= count:
        connected, numbers = torch.arange(size), torch.cat(edges)
    one, other = numbers.view(2, -1).numpy()
    shape = (len(connected), len(connected))
    adjacency = coo_array((torch.ones(len(one)).double().numpy(), (one, other)), shape)
    adjacency = (adjacency + adjacency.T).tocsr()
    degree = adjacency.sum(axis=1)
    scale = diags_array((degree + DEGREE_REGULARIZATION * degree.mean()) ** -0.5)
    start = torch.rand(len(connected)).double().numpy()
    vectors = torch.from_numpy(eigsh(scale @ adjacency @ scale, count, which="LA", v0=start)[1])
    rows = normalize(vectors, dim=1).numpy()
    seed = int(torch.randint(2**31, ()))
    centers, _ = kmeans(rows, count, iter=KMEANS_RESTARTS, seed=seed)
    cluster = torch.full((size,), -1)
    cluster[connected] = torch.from_numpy(vq(rows, centers)[0]).long()
    return cluster


def _aligned_mean(
    images: Float[Tensor, "n C H W"],
    vectors: Float[Tensor, "n T q"],
    maps: Float[Tensor, "T 2 3"],
    window: Float[Tensor, "H W"],
    inverted: bool,
) -> Float[Tensor, "C H W"]:
    """Return the weighted mean of images after warping, or negating, them to agree."""
    if not len(images):
        return torch.full(images.shape[1:], 0.5)
    rest, each = vectors[:, 0], torch.arange(len(vectors))
    center = torch.linalg.eigh(rest.mT @ rest).eigenvectors[:, -1] if inverted else rest.mean(0)
    for _ in range(ALIGNMENT_ITERATIONS):
        cosine = vectors @ normalize(center, dim=0)
        best = (cosine.abs() if inverted else cosine).argmax(1)
        cosine = cosine[each, best] if inverted else cosine[each, best].clamp_min(0)
        # As in invariant_kmeans: images that are explained well weigh most.
        weight = cosine / (1 + NOISE - cosine.square())
        center = weight @ vectors[each, best]
    aligned = _warp(images, maps[best]).unflatten(2, images.shape[2:])
    aligned = normalize_channels(aligned, window)
    mean = (weight[:, None, None, None] * aligned).sum(0, keepdim=True)
    return to_image(normalize_channels(mean, window))[0]


def _align_polarity(
    images: Float[Tensor, "K C H W"], window: Float[Tensor, "H W"]
) -> Float[Tensor, "K C H W"]:
    """Replace some images by their negatives, so that all correlate with what they share.

    A cluster of images and their negatives has no polarity of its own. If that of all clusters
    is the same, one transform of colors that sprites share can invert any of them.
    """
    vectors = (normalize_channels(images, window) * window).flatten(1)
    # The signs of the first principal component; the majority keeps its polarity.
    shared = torch.linalg.eigh(vectors @ vectors.mT).eigenvectors[:, -1]
    shared = shared * shared.sum().sign()
    return torch.where((shared < 0)[:, None, None, None], 1 - images, images)
