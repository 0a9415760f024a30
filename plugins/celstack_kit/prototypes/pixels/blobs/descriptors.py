"""Describe patches by histograms of gradients, silhouettes and, if they matter, colors."""

import numpy as np
from jaxtyping import Float
from scipy import ndimage

PATCH_SIZE = (24, 24)
CELLS, DIRECTIONS = 3, 8
GRADIENT_SIGMA = 0.7
LOG_LIGHT_LIMITS = (-1.9, 1.4)
"""Bounds of the logarithm of brightness over its median in a blob."""
GRADIENT_AXES, SILHOUETTE_AXES, COLOR_AXES = 40, 10, 10
"""Numbers of principal axes that are kept."""
COLOR_CELLS = 4
MIN_DEVIATION = 0.01
"""Least standard deviation of vectors, as a share of their length, that is scaled up to 1."""


def describe(
    patches: Float[np.ndarray, "N T D h w"], with_color: bool
) -> Float[np.ndarray, "N T q"]:
    """Return vectors whose distances say how different objects look.

    Principal axes are those of the patches at the first angle. Each part of the vectors has
    the standard deviation 1 along its first axis.
    """
    parts = [
        _principal(_gradient_histograms(patches), GRADIENT_AXES),
        _principal(patches[:, :, -1].reshape(*patches.shape[:2], -1), SILHOUETTE_AXES),
    ]
    if with_color:
        parts.append(_principal(_cell_colors(patches), COLOR_AXES))
    return np.concatenate(parts, axis=2)


def _gradient_histograms(patches: Float[np.ndarray, "N T D h w"]) -> Float[np.ndarray, "..."]:
    """Return square roots of normalized histograms of gradients, in cells of the patch."""
    mask = patches[:, :, -1]
    light = patches[:, :, :-1].max(2)
    inside = np.where(mask > 0.5, light, np.nan)
    middle = np.nanmedian(inside.reshape(*mask.shape[:2], -1), axis=2)[..., None, None]
    logs = np.log((light / np.maximum(middle, 1e-3)).clip(1e-3)).clip(*LOG_LIGHT_LIMITS)
    sigma = (0, 0, GRADIENT_SIGMA, GRADIENT_SIGMA)
    down, across = np.gradient(ndimage.gaussian_filter(logs, sigma), axis=(2, 3))
    strength = np.hypot(down, across) * mask
    direction = np.arctan2(down, across) * (DIRECTIONS / (2 * np.pi))
    bins = []
    for center in range(DIRECTIONS):
        apart = np.abs((direction - center + DIRECTIONS / 2) % DIRECTIONS - DIRECTIONS / 2)
        bins.append(_cell_sums(strength * (1 - apart).clip(0)))
    counts = np.concatenate(bins, axis=2)
    return np.sqrt(counts / (counts.sum(2, keepdims=True) + 1e-6))


def _cell_sums(maps: Float[np.ndarray, "..."], cells: int = CELLS) -> Float[np.ndarray, "..."]:
    """Sum the values of maps (..., h, w) in square cells; return (..., cells * cells)."""
    *lead, height, width = maps.shape
    split = maps.reshape(*lead, cells, height // cells, cells, width // cells)
    return split.sum((-3, -1)).reshape(*lead, cells * cells)


def _cell_colors(patches: Float[np.ndarray, "N T D h w"]) -> Float[np.ndarray, "..."]:
    """Return mean colors in cells, weighted by the mask."""
    mask = patches[:, :, -1:]
    sums = _cell_sums(patches[:, :, :-1] * mask, COLOR_CELLS)
    return sums.reshape(*patches.shape[:2], -1)


def _principal(values: Float[np.ndarray, "..."], axes: int) -> Float[np.ndarray, "..."]:
    """Project vectors onto the principal axes of those at the first angle."""
    first = values[:, 0]
    middle = first.mean(0)
    directions = np.linalg.svd(first - middle, full_matrices=False)[2][:axes]
    scores = (values - middle) @ directions.T
    # Where nothing differs, rounding errors do.
    least = MIN_DEVIATION * float(np.sqrt((first**2).sum(1).mean()))
    return scores / max(float(scores[:, 0].std()), least, 1e-9)
