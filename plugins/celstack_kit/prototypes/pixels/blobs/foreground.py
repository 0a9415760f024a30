"""Separate the foreground of images from a background that all of them share."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy import ndimage
from torch import Tensor

from celstack.geometry import pixel_centers

LEVEL_FLOOR = 0.02
"""Added to levels before their logarithm is taken, so that black has one."""
LIGHT_ITERATIONS = 8
MAX_LIGHT_DEVIATIONS = 2.5
"""Pixels further from the fitted light, in standard deviations, are not ground."""
MIN_LIGHT_DEVIATION = 0.004
NOISE_DEVIATIONS = 5.0
"""Pixels that differ from the background by less, in standard deviations, are noise."""
OPENING_SHARE = 1 / 64
"""Radius of the opening that removes specks, as a share of the canvas's longer side."""
SHADOW_SHARE = 1 / 40
"""The same for pixels that are only darker or brighter: shadows at objects are narrow."""
MIN_SLOPE = 0.28
"""Least change per pixel across an outline, as a share of the contrast."""
MIN_LOWER_CLASS = 0.1
"""Share of the values that must be far below the threshold, to count as a class."""
OTSU_BINS = 256


def find_foreground(images: Float[Tensor, "N C H W"]) -> Bool[np.ndarray, "N H W"]:
    """Return which pixels of images belong to objects.

    The background is the median of all images, under a light that varies slowly over each
    image. An object has another hue than the background, or is far darker or brighter; the
    thresholds are those that separate the pixels of all images best (Otsu's method). What is
    only darker, and narrow, is a shadow.
    """
    deviation = light_deviation(images)
    value = deviation.mean(1)
    hue = (deviation - value[:, None]).abs().amax(1)
    hue_limit = _limit(hue, _noise(hue))
    plain = value[hue < hue_limit / 2]
    darker, brighter = (_limit(sign * plain, _noise(plain.abs())) for sign in (-1, 1))
    colored = (hue > hue_limit).numpy()
    contrasting = ((value < -darker) | (value > brighter)).numpy()
    longer = max(images.shape[2:])
    speck, shadow = (_disk(share * longer) for share in (OPENING_SHARE, SHADOW_SHARE))
    masks = []
    for hued, lit, levels in zip(colored, contrasting, value.numpy(), strict=True):
        body = ndimage.binary_fill_holes(hued)
        body |= _sharp_parts(ndimage.binary_opening(lit & ~body, shadow), levels, body)
        masks.append(ndimage.binary_opening(ndimage.binary_fill_holes(body), speck))
    return np.stack(masks)


def _sharp_parts(
    mask: Bool[np.ndarray, "H W"],
    value: Float[np.ndarray, "H W"],
    others: Bool[np.ndarray, "H W"],
) -> Bool[np.ndarray, "H W"]:
    """Return the connected parts of a mask whose outline is sharp, unlike a shadow's.

    The outline against other objects does not count.
    """
    labels, count = ndimage.label(mask)
    slope = ndimage.maximum_filter(ndimage.gaussian_gradient_magnitude(value, 1.0), 3)
    apart = ~ndimage.binary_dilation(others, iterations=3)
    kept = [False]
    for label in range(1, count + 1):
        own = labels == label
        outline = own & ~ndimage.binary_erosion(own) & apart
        contrast = float(np.median(np.abs(value[own])))
        steep = slope[outline] > MIN_SLOPE * contrast
        kept.append(2 * int(steep.sum()) > len(steep))
    return np.array(kept)[labels]


def light_deviation(images: Float[Tensor, "N C H W"]) -> Float[Tensor, "N C H W"]:
    """Return the logarithm of images over the background, with the light of each removed.

    The light is a quadratic polynomial of the position, fitted robustly.
    """
    levels = (images + LEVEL_FLOOR).log()
    deviation = levels - levels.median(0).values
    height, width = images.shape[2:]
    x, y = pixel_centers(height, width, like=images).unbind(1)
    terms = torch.stack([torch.ones_like(x), x, y, x * y, x * x, y * y], dim=1)
    value = deviation.mean(1).flatten(1)
    light = value.median(1, keepdim=True).values.expand_as(value)
    ridge = 1e-6 * len(x) * torch.eye(terms.shape[1])
    for _ in range(LIGHT_ITERATIONS):
        apart = (value - light).abs()
        spread = 1.4826 * apart.median(1, keepdim=True).values.clamp_min(MIN_LIGHT_DEVIATION)
        near = (apart < MAX_LIGHT_DEVIATIONS * spread).to(value)
        normal = torch.einsum("nm,mp,mq->npq", near, terms, terms) + ridge
        weights = torch.linalg.solve(normal, (near * value) @ terms)
        light = weights @ terms.T
    return deviation - light.view(-1, 1, *images.shape[2:])


def _limit(values: Float[Tensor, "*any"], noise: float) -> float:
    """Return the threshold above which values belong to objects; inf if none do.

    Of two classes, such as shadows and objects, the upper one is meant, and the threshold
    lies between them (Otsu's method). If there is only one, it is half of what its values
    typically are: that is where edges are.
    """
    beyond = values[values > NOISE_DEVIATIONS * max(noise, MIN_LIGHT_DEVIATION)]
    if not len(beyond):
        return float("inf")
    between = _otsu(beyond)
    lower = float((beyond < between / 2).float().mean())
    return between if lower > MIN_LOWER_CLASS else 0.5 * float(beyond.median())


def _noise(deviations: Float[Tensor, "*any"]) -> float:
    """Return the standard deviation of most values, from the median of their sizes."""
    return 1.4826 * float(deviations.median()) if deviations.numel() else 0.0


def _otsu(values: Float[Tensor, " n"]) -> float:
    """Return the threshold with the largest variance between the two classes."""
    counts, edges = np.histogram(values.numpy(), OTSU_BINS)
    centers = (edges[1:] + edges[:-1]) / 2
    below, total = counts.cumsum(), (counts * centers).cumsum()
    above = below[-1] - below
    means = total / below.clip(1), (total[-1] - total) / above.clip(1)
    return float(centers[(below * above * (means[1] - means[0]) ** 2).argmax()])


def _disk(radius: float) -> Bool[np.ndarray, "s s"]:
    reach = max(1, round(radius))
    return np.hypot(*np.mgrid[-reach : reach + 1, -reach : reach + 1]) <= reach + 0.3
