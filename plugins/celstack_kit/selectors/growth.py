"""Growth: which sprites are one too many, and which are missing."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from celstack import Decomposer, Scene
from celstack.softclip import softclip
from celstack_kit.selectors.correlation import Correlation

ALIKE = 0.96
"""Sprites whose correlation is higher, where it is highest, are the same."""
OPAQUE = 3.0
"""How many times weaker than its strongest pixel a drawn sprite may be and still be opaque."""
FAINT = 0.05
"""Nothing is drawn of what is weaker than this."""
LIGHT = 0.9
"""The colour of a drawn sprite where it is transparent."""


def find_twins(sprites: Float[Tensor, "K D h w"]) -> list[tuple[int, int]]:
    """List the pairs of sprites that look alike when one is shifted over the other."""
    mask = softclip(sprites[:, -1:])
    shown = torch.cat([mask * sprites[:, :-1], mask], dim=1)
    size = (sprites.shape[2], sprites.shape[3])
    length = shown.flatten(1).norm(dim=1).clamp_min(1e-6)
    alike = Correlation(shown, size)(shown).flatten(2).amax(2) / (length[:, None] * length)
    return [(i, j) for i, j in (alike > ALIKE).nonzero().tolist() if i < j]


def draw_missing(
    images: Float[Tensor, "B C H W"],
    scene: Scene,
    decomposer: Decomposer,
    count: int,
    size: tuple[int, int],
    tints: bool,
) -> Float[Tensor, "n D h w"]:
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
        if float(power.max()) > FAINT
    ]
    return torch.stack(drawn) if drawn else images.new_zeros(0, images.shape[1] + 1, *size)


def _window(
    image: Float[Tensor, "C H W"], corner: tuple[int, int], size: tuple[int, int]
) -> Float[Tensor, "C h w"]:
    (row, column), (height, width) = corner, size
    return image[:, row : row + height, column : column + width]


def _draw(
    image: Float[Tensor, "C h w"], strength: Float[Tensor, "1 h w"], tints: bool
) -> Float[Tensor, "D h w"]:
    alpha = (OPAQUE * strength / strength.max().clamp_min(FAINT)).clamp(0.0, 1.0)
    colour = image
    if tints:
        # Gains only make colours darker, so the sprite itself is as bright as can be.
        light = image.amax(0, keepdim=True)
        brightest = (light * alpha).max()
        colour = (light / brightest if brightest > FAINT else torch.ones_like(light)).clamp_max(
            1.0
        )
        colour = torch.where(alpha > 1 / OPAQUE, colour, LIGHT).expand_as(image)
    return torch.cat([colour, alpha])


def _bell(size: tuple[int, int], like: Tensor) -> Float[Tensor, "1 1 h w"]:
    """Make a bump that is highest in the middle, so that what is drawn is there, too."""
    down, across = (
        torch.hann_window(length + 2, periodic=False)[1:-1].to(like) for length in size
    )
    return (down[:, None] * across)[None, None]
