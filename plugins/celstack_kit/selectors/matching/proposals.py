"""Growth: which sprites are one too many, and which are missing."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, pad

from celstack import Decomposer, Scene
from celstack.geometry.softclip import softclip
from celstack_kit.selectors.matching.correlation import Correlation
from celstack_kit.selectors.matching.pose_bank import even_window, seen_in

ALIKE = 0.96
"""Sprites whose correlation is higher, where it is highest, are the same."""
NEARLY_ALIKE = 0.95
"""The same for sprites that are turned and resized, which never fit to the pixel: a doubt."""
TURNS = 24
SMALLER = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
FILLED = 0.8
"""The share of a sprite's side that what is drawn is enlarged to."""
OPAQUE = 3.0
"""How many times weaker than its strongest pixel a drawn sprite may be and still be opaque."""
FAINT = 0.05
"""Nothing is drawn of what is weaker than this."""
LIGHT = 0.9
"""The color of a drawn sprite where it is transparent."""


class Drawings(NamedTuple):
    """What may become sprites, and the images that it was drawn from."""

    looks: Float[Tensor, "n D h w"]
    source: Int[Tensor, " n"]


def find_twins(sprites: Float[Tensor, "K D h w"]) -> list[tuple[int, int]]:
    """List the pairs of sprites that look alike when one is shifted over the other."""
    looks = _painted(sprites[:, :-1], softclip(sprites[:, -1:]))
    return _pairs(_likeness(looks, looks) > ALIKE)


def find_turned_twins(sprites: Float[Tensor, "K D h w"]) -> list[tuple[int, int]]:
    """List the pairs of sprites that look alike when one is shifted, turned and shrunk."""
    angles = torch.arange(TURNS).to(sprites) * (2 * math.pi / TURNS)
    ways = torch.cartesian_prod(sprites.new_tensor(SMALLER).log(), angles)
    window = even_window(float(max(sprites.shape[2:])))
    own, turned = (seen_in(sprites, some, window) for some in (ways.new_zeros(1, 2), ways))
    own, turned = (_painted(looks[:, :-1], looks[:, -1:]) for looks in (own, turned))
    likeness = _likeness(own, turned).unflatten(1, (len(sprites), -1)).amax(2)
    return _pairs(likeness.maximum(likeness.T) > NEARLY_ALIKE)


def _painted(
    color: Float[Tensor, "n C h w"], mask: Float[Tensor, "n 1 h w"]
) -> Float[Tensor, "n D h w"]:
    return torch.cat([mask * color, mask], dim=1)


def _likeness(
    some: Float[Tensor, "n D h w"], others: Float[Tensor, "m D h w"]
) -> Float[Tensor, "n m"]:
    """Return the correlation of every two, where it is highest."""
    size = (some.shape[2], some.shape[3])
    mine, theirs = (looks.flatten(1).norm(dim=1).clamp_min(1e-6) for looks in (some, others))
    return Correlation(others, size)(some).flatten(2).amax(2) / (mine[:, None] * theirs)


def _pairs(alike: Bool[Tensor, "K K"]) -> list[tuple[int, int]]:
    return [(i, j) for i, j in alike.nonzero().tolist() if i < j]


def enlarge(sprites: Float[Tensor, "n D h w"]) -> Float[Tensor, "n D h w"]:
    """Let what is opaque fill most of each sprite: whoever is resized had better be large.

    What is opaque in several pieces is framed by its largest; the others may be of something
    else, and be cut off.
    """
    frames = [_frame(_largest_piece(sprite[-1] > 0.5)) for sprite in sprites]
    maps = sprites.new_tensor(frames).view(-1, 2, 3)
    where = affine_grid(maps, list(sprites.shape), align_corners=False)
    return grid_sample(sprites, where, padding_mode="border", align_corners=False)


def _largest_piece(opaque: Bool[Tensor, "h w"]) -> Bool[Tensor, "h w"]:
    from scipy.ndimage import label

    pieces = torch.from_numpy(label(opaque.cpu().numpy())[0]).to(opaque.device)
    # Number 0 is what is not opaque.
    areas = pieces.flatten().bincount()[1:]
    return pieces == int(areas.argmax()) + 1 if len(areas) else opaque


def _frame(opaque: Bool[Tensor, "h w"]) -> list[list[float]]:
    """Return the map to a frame around what is opaque; to all of it, if that is much."""
    middles, shares = [0.0, 0.0], []
    for axis in (0, 1) if opaque.any() else ():
        line = opaque.any(axis).nonzero()[:, 0].tolist()
        length = opaque.shape[1 - axis]
        middles[axis] = (line[0] + line[-1] + 1) / length - 1
        shares.append((line[-1] - line[0] + 1) / length)
    zoom = min(1.0, max(shares, default=1.0) / FILLED)
    return [[zoom, 0.0, middles[0]], [0.0, zoom, middles[1]]]


def draw_missing(
    images: Float[Tensor, "B C H W"],
    scene: Scene,
    decomposer: Decomposer,
    count: int,
    size: tuple[int, int],
    tints: bool,
) -> Drawings:
    """Draw sprites from the images that are explained worst, one from each.

    The layer that explains worst is taken out; what then is not explained is the sprite.
    """
    rendering = decomposer.render(scene)
    wrong = (rendering.image - images).square().sum(1)
    worst = wrong.flatten(1).sum(1).topk(min(count, len(images))).indices
    images, wrong = images[worst], wrong[worst]
    blame = (rendering.layers[worst, :, -1] * wrong[:, None]).flatten(2).sum(2).argmax(1)
    sprite = scene.sprite[worst].scatter(1, blame[:, None], -1)
    without = decomposer.render(scene[worst].evolve(sprite=sprite)).image
    strength = (images - without).abs().amax(1, keepdim=True)
    bell = _bell(size, like=images)
    place = Correlation(bell, decomposer.canvas)(strength.square())[:, 0]
    (above, left), columns = (length // 2 for length in size), place.shape[2]
    best = place.flatten(1).argmax(1).tolist()
    margin = (left, left, above, above)
    corners = [(index // columns, index % columns) for index in best]
    drawn = [
        _draw(_window(image, corner, size), _window(power, corner, size), tints)
        for image, power, corner in zip(
            pad(images, margin), pad(strength, margin), corners, strict=True
        )
    ]
    seen = strength.flatten(1).amax(1) > FAINT
    return Drawings(torch.stack(drawn)[seen], worst[seen])


def _window(
    image: Float[Tensor, "C H W"], corner: tuple[int, int], size: tuple[int, int]
) -> Float[Tensor, "C h w"]:
    (row, column), (height, width) = corner, size
    return image[:, row : row + height, column : column + width]


def _draw(
    image: Float[Tensor, "C h w"], strength: Float[Tensor, "1 h w"], tints: bool
) -> Float[Tensor, "D h w"]:
    alpha = (OPAQUE * strength / strength.max().clamp_min(FAINT)).clamp(0.0, 1.0)
    color = image
    if tints:
        # Gains only make colors darker, so the sprite itself is as bright as can be.
        light = image.amax(0, keepdim=True)
        brightest = (light * alpha).max()
        color = (light / brightest if brightest > FAINT else torch.ones_like(light)).clamp_max(
            1.0
        )
        color = torch.where(alpha > 1 / OPAQUE, color, LIGHT).expand_as(image)
    return torch.cat([color, alpha])


def _bell(size: tuple[int, int], like: Tensor) -> Float[Tensor, "1 1 h w"]:
    """Make a bump that is highest in the middle, so that what is drawn is there, too."""
    down, across = (
        torch.hann_window(length + 2, periodic=False)[1:-1].to(like) for length in size
    )
    return (down[:, None] * across)[None, None]
