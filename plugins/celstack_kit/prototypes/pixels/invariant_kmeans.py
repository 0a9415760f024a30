"""K-means clusters of images that ignore the gain and offset of colors."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from celstack.progress import WorkProgress

RESTARTS = 200
"""Number of random initializations, of which the best result is kept."""
ITERATIONS = 20
PRINCIPAL_AXES = 64
"""Images are compared in their projection onto this many principal axes."""
MIN_CONTRAST = 0.02
"""Lower bound of an image's contrast when it is normalized."""
NOISE = 0.05
"""Share of an image's energy that is considered noise, which bounds the log-likelihood."""
CONTRAST, MAX_DEVIATIONS = 0.2, 2.5
"""Standard deviation of the returned images around 0.5, and where they are clipped."""


def invariant_kmeans(
    images: Float[Tensor, "N C H W"], count: int, window: Float[Tensor, "H W"], inverted: bool
) -> Float[Tensor, "K C H W"]:
    """Cluster images by direction, and return the mean image of each cluster.

    Channels are normalized to mean 0 and variance 1 under the window, so that clusters are of
    unit vectors (spherical k-means). The objective is the mean logarithm of each image's
    unexplained energy, which is robust to outliers.

    Args:
        images: The images.
        count: Number of clusters.
        window: Weights of the pixels.
        inverted: Whether an image and its negative belong to the same cluster.
    """
    normalized = normalize_channels(images, window)
    vectors = (normalized * window).flatten(1)
    vectors = vectors / vectors.norm(dim=1, keepdim=True).clamp_min(MIN_CONTRAST)
    num_axes = min(PRINCIPAL_AXES, *vectors.shape)
    _, _, axes = torch.pca_lowrank(vectors, num_axes, center=False)
    vectors = vectors @ axes
    tries = []
    with WorkProgress("sprites: clustering images", RESTARTS) as progress:
        for _ in range(RESTARTS):
            tries.append(_spherical_kmeans(vectors, count, inverted))
            progress.advance(1)
    centers = min(tries, key=lambda one: one[0])[1]
    cosine = vectors @ centers.mT
    cluster = (cosine.abs() if inverted else cosine).argmax(1)
    signs = torch.ones(len(vectors), 1)
    if inverted:
        signs = cosine.gather(1, cluster[:, None]).sign()
    members = one_hot(cluster, count).to(vectors)
    means = (members * signs).mT @ normalized.flatten(1)
    means = means / members.sum(0).clamp_min(1)[:, None]
    return to_image(means.view(count, *images.shape[1:]))


def to_image(normalized: Float[Tensor, "K C H W"]) -> Float[Tensor, "K C H W"]:
    """Map channels of mean 0 and variance 1 to colors around 0.5."""
    return 0.5 + CONTRAST * normalized.clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)


def normalize_channels(
    images: Float[Tensor, "N C H W"], window: Float[Tensor, "H W"]
) -> Float[Tensor, "N C H W"]:
    """Normalize channels to mean 0 and variance 1, weighted by the squared window."""
    weights = window.square() / window.square().sum()
    centered = images - (images * weights).sum((2, 3), keepdim=True)
    contrast = (centered.square() * weights).sum((2, 3), keepdim=True).sqrt()
    return centered / (contrast + MIN_CONTRAST)


def _spherical_kmeans(
    vectors: Float[Tensor, "N q"], count: int, inverted: bool
) -> tuple[float, Float[Tensor, "K q"]]:
    """Run k-means of directions from random images; return the objective and the centers."""
    first = torch.randint(len(vectors), (count,))
    if count <= len(vectors):
        first = torch.randperm(len(vectors))[:count]
    centers = _unit(vectors[first])
    for _ in range(ITERATIONS):
        cosine = vectors @ centers.mT
        cosine = cosine if inverted else cosine.clamp_min(0)
        best, cluster = cosine.abs().max(1)
        # The derivative of the logarithm: images that are explained well weigh most.
        weight = cosine.gather(1, cluster[:, None]) / (1 + NOISE - best.square())[:, None]
        moved = (one_hot(cluster, count).to(vectors) * weight).mT @ vectors
        # An empty cluster keeps its center.
        centers = torch.where(moved.norm(dim=1, keepdim=True) > 0, _unit(moved), centers)
    cosine = vectors @ centers.mT
    best = (cosine.abs() if inverted else cosine.clamp_min(0)).amax(1)
    return float((1 + NOISE - best.square()).log().mean()), centers


def _unit(vectors: Float[Tensor, "n q"]) -> Float[Tensor, "n q"]:
    return vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-12)
