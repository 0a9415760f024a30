"""Find duplicate sprites, and propose new ones from what is explained worst."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, pad

from celstack import Decomposer, Scene
from celstack.geometry import softclip
from celstack_kit.selectors.matching.correlation import Correlation
from celstack_kit.selectors.matching.pose_bank import render_variants, window_size

MIN_DUPLICATE_CORRELATION = 0.96
"""Sprites whose peak normalized cross-correlation is higher are duplicates."""
MIN_ROTATED_CORRELATION = 0.95
"""The same over rotations and scales, whose resampling blurs sprites."""
ROTATIONS = 24
SCALES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
CONTENT_SHARE = 0.8
"""Share of a sprite's side that its opaque content is enlarged to."""
ALPHA_GAIN = 3.0
"""Pixels of a proposal are opaque from this fraction, 1 / gain, of the strongest residual."""
MIN_RESIDUAL = 0.05
"""Residuals below this are not proposed."""
TRANSPARENT_COLOR = 0.9
"""Color of a proposal where it is transparent."""


class Proposals(NamedTuple):
    """Proposed sprites, and the index of the image that each was cut out of."""

    sprites: Float[Tensor, "n D h w"]
    source: Int[Tensor, " n"]


def find_shifted_duplicates(sprites: Float[Tensor, "K D h w"]) -> list[tuple[int, int]]:
    """Return the pairs of sprites that are equal up to a translation."""
    painted = _premultiply(sprites[:, :-1], softclip(sprites[:, -1:]))
    return _pairs(_peak_correlation(painted, painted) > MIN_DUPLICATE_CORRELATION)


def find_rotated_duplicates(sprites: Float[Tensor, "K D h w"]) -> list[tuple[int, int]]:
    """Return the pairs of sprites that are equal up to translation, rotation and scale."""
    angles = torch.arange(ROTATIONS).to(sprites) * (2 * math.pi / ROTATIONS)
    variants = torch.cartesian_prod(sprites.new_tensor(SCALES).log(), angles)
    window = window_size(float(max(sprites.shape[2:])))
    both = (variants.new_zeros(1, 2), variants)
    upright, varied = (render_variants(sprites, some, window) for some in both)
    upright, varied = (_premultiply(one[:, :-1], one[:, -1:]) for one in (upright, varied))
    similarity = _peak_correlation(upright, varied).unflatten(1, (len(sprites), -1)).amax(2)
    return _pairs(similarity.maximum(similarity.T) > MIN_ROTATED_CORRELATION)


def _premultiply(
    color: Float[Tensor, "n C h w"], mask: Float[Tensor, "n 1 h w"]
) -> Float[Tensor, "n D h w"]:
    return torch.cat([mask * color, mask], dim=1)


def _peak_correlation(
    some: Float[Tensor, "n D h w"], others: Float[Tensor, "m D h w"]
) -> Float[Tensor, "n m"]:
    """Return the maximum over shifts of the normalized cross-correlation of all pairs."""
    size = (some.shape[2], some.shape[3])
    mine, theirs = (images.flatten(1).norm(dim=1).clamp_min(1e-6) for images in (some, others))
    return Correlation(others, size)(some).flatten(2).amax(2) / (mine[:, None] * theirs)


def _pairs(duplicate: Bool[Tensor, "K K"]) -> list[tuple[int, int]]:
    return [(i, j) for i, j in duplicate.nonzero().tolist() if i < j]


def zoom_to_content(sprites: Float[Tensor, "n D h w"]) -> Float[Tensor, "n D h w"]:
    """Enlarge the largest opaque component of each sprite to fill most of it.

    Sprites that are scaled down later keep more detail if they are stored large. Other
    components may belong to another object, and may be cut off.
    """
    zooms = [_zoom(_largest_component(sprite[-1] > 0.5)) for sprite in sprites]
    maps = sprites.new_tensor(zooms).view(-1, 2, 3)
    grid = affine_grid(maps, list(sprites.shape), align_corners=False)
    return grid_sample(sprites, grid, padding_mode="border", align_corners=False)


def _largest_component(opaque: Bool[Tensor, "h w"]) -> Bool[Tensor, "h w"]:
    """Return the mask of the largest connected component."""
    from scipy.ndimage import label

    components = torch.from_numpy(label(opaque.cpu().numpy())[0]).to(opaque.device)
    # Component 0 is the background.
    areas = components.flatten().bincount()[1:]
    return components == int(areas.argmax()) + 1 if len(areas) else opaque


def _zoom(opaque: Bool[Tensor, "h w"]) -> list[list[float]]:
    """Return the affine map that enlarges a mask's bounding box; never shrinks it."""
    middles, shares = [0.0, 0.0], []
    for axis in (0, 1) if opaque.any() else ():
        line = opaque.any(axis).nonzero()[:, 0].tolist()
        length = opaque.shape[1 - axis]
        middles[axis] = (line[0] + line[-1] + 1) / length - 1
        shares.append((line[-1] - line[0] + 1) / length)
    zoom = min(1.0, max(shares, default=1.0) / CONTENT_SHARE)
    return [[zoom, 0.0, middles[0]], [0.0, zoom, middles[1]]]


def propose_from_residuals(
    images: Float[Tensor, "B C H W"],
    scene: Scene,
    decomposer: Decomposer,
    count: int,
    size: tuple[int, int],
    tints: bool,
) -> Proposals:
    """Propose one sprite from each of the images with the largest squared error.

    The layer with the largest error is removed; the window in which the residual is then
    strongest becomes the sprite.

    Args:
        images: The images.
        scene: Their current explanation.
        decomposer: The model.
        count: Number of proposals, at most; images with small residuals give none.
        size: Height and width of the proposals.
        tints: Whether sprites can be tinted; then proposals are gray and bright.
    """
    rendering = decomposer.render(scene)
    error = (rendering.image - images).square().sum(1)
    worst = error.flatten(1).sum(1).topk(min(count, len(images))).indices
    images, error = images[worst], error[worst]
    removed = (rendering.layers[worst, :, -1] * error[:, None]).flatten(2).sum(2).argmax(1)
    sprite = scene.sprite[worst].scatter(1, removed[:, None], -1)
    without = decomposer.render(scene[worst].evolve(sprite=sprite)).image
    strength = (images - without).abs().amax(1, keepdim=True)
    window = _hann_window(size, like=images)
    response = Correlation(window, decomposer.canvas)(strength.square())[:, 0]
    (above, left), columns = (length // 2 for length in size), response.shape[2]
    best = response.flatten(1).argmax(1).tolist()
    margin = (left, left, above, above)
    corners = [(index // columns, index % columns) for index in best]
    sprites = [
        _cut_out(_crop(image, corner, size), _crop(power, corner, size), tints)
        for image, power, corner in zip(
            pad(images, margin), pad(strength, margin), corners, strict=True
        )
    ]
    visible = strength.flatten(1).amax(1) > MIN_RESIDUAL
    return Proposals(torch.stack(sprites)[visible], worst[visible])


def _crop(
    image: Float[Tensor, "C H W"], corner: tuple[int, int], size: tuple[int, int]
) -> Float[Tensor, "C h w"]:
    (row, column), (height, width) = corner, size
    return image[:, row : row + height, column : column + width]


def _cut_out(
    image: Float[Tensor, "C h w"], strength: Float[Tensor, "1 h w"], tints: bool
) -> Float[Tensor, "D h w"]:
    """Return a sprite whose alpha follows the strength of the residual."""
    alpha = (ALPHA_GAIN * strength / strength.max().clamp_min(MIN_RESIDUAL)).clamp(0.0, 1.0)
    color = image
    if tints:
        # Gains are at most 1, so the sprite itself is as bright as possible.
        light = image.amax(0, keepdim=True)
        brightest = (light * alpha).max()
        bright = light / brightest if brightest > MIN_RESIDUAL else torch.ones_like(light)
        color = bright.clamp_max(1.0)
        color = torch.where(alpha > 1 / ALPHA_GAIN, color, TRANSPARENT_COLOR).expand_as(image)
    return torch.cat([color, alpha])


def _hann_window(size: tuple[int, int], like: Tensor) -> Float[Tensor, "1 1 h w"]:
    """Return a 2D Hann window, which centers proposals on the strongest residuals."""
    down, across = (
        torch.hann_window(length + 2, periodic=False)[1:-1].to(like) for length in size
    )
    return (down[:, None] * across)[None, None]
