"""Fitting: move and tint every sprite until it fits, and choose the one that fits best."""

from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float, Int
from torch import Tensor

from celstack import CelstackError, Decomposer, Scene, Selector, hookimpl
from celstack.geometry.sampling import canvas_points
from celstack_kit.selectors.fitting.gauss_newton import Costs, approach
from celstack_kit.selectors.fitting.pose_space import Poses
from celstack_kit.selectors.fitting.residuals import FIXED, Composite, View, Window
from celstack_kit.selectors.matching.placement import tint

EDGE = 0.08
"""Where a window lets less through, nothing is looked at."""
MOST = 2**24
"""About how many numbers are held at a time."""


class Fitting(Selector):
    """Fit the transforms of all sprites to an image by themselves, and keep the best fit.

    For pictures of one thing each. From the rest pose, warps follow Gauss and Newton for so
    many ``steps``; gains and offsets of colors, and those of the background, follow in closed
    form. ``move_cost`` is the price of looking half a canvas away, on the mean over all
    points and by squares, as a share of the image's variance: it holds sprites back from
    explaining what is around them. ``bend_cost`` is charged, besides, for what no affine map
    could do. ``tint_cost`` is that of changing a gain or an offset by 1.

    Sprites may only be told apart by what is in the middle of the image: with a ``window``,
    they are compared with the image through a Gaussian of so many pixels (or height, width),
    and their masks and the background do not matter, until the sprite is chosen. What
    ``inverts`` may be shown as a negative, dark for light.

    No predictor is needed: only sprites and backgrounds learn. Backgrounds are not moved.
    """

    empty_cost = None

    def __init__(
        self,
        steps: Annotated[int, Ge(0)] = 4,
        move_cost: Annotated[float, Ge(0)] = 1.0,
        bend_cost: Annotated[float, Ge(0)] = 0.0,
        tint_cost: Annotated[float, Ge(0)] = 1e-4,
        window: Annotated[float, Ge(0.5)]
        | tuple[Annotated[float, Ge(0.5)], Annotated[float, Ge(0.5)]]
        | None = None,
        inverts: bool = False,
    ) -> None:
        self.steps = steps
        self.costs = Costs(move_cost, bend_cost)
        self.tint_cost = tint_cost
        self.window = window
        self.inverts = inverts

    def check(self, decomposer: Decomposer) -> None:
        """Refuse a model of more than one layer."""
        layers = decomposer.compositor.layers
        if layers != 1:
            raise CelstackError(
                f"{self.name} explains images by one sprite each, and there are {layers} "
                "layers; use layers = 1, or another selector, such as matching"
            )

    @torch.no_grad()
    def explain(
        self,
        images: Float[Tensor, "B C H W"],
        decomposer: Decomposer,
        noise: Float[Tensor, "K H W"] | None,  # noqa: ARG002
        allow_empty: bool,  # noqa: ARG002
    ) -> Scene:
        """Fit every sprite, some images at a time."""
        poses, sprites = Poses(decomposer), decomposer.sprite_images()
        backdrops, costs = self._behind(decomposer, images)
        each = images.shape[1:].numel() * len(sprites) * (poses.count + 4 * len(backdrops))
        fits = [
            self._fit(some, sprites, poses, backdrops, costs)
            for some in images.split(max(1, MOST // each))
        ]
        sprite, pose, tints, background = (torch.cat(one) for one in zip(*fits, strict=True))
        of_sprite, of_layer = poses.spread(pose)
        tinted = tint(decomposer, tints[:, :, 0], tints[:, :, 1])
        if tinted is not None:
            of_sprite, of_layer = of_sprite + tinted[0], of_layer + tinted[1]
        logits = images.new_zeros(len(images), decomposer.compositor.num_logits)
        chosen = behind_params = None
        if decomposer.backgrounds is not None:
            chosen = background
            behind_params = decomposer.background_chain.tint(tints[:, :, 2], tints[:, :, 3])
            if behind_params is None:
                count = decomposer.background_chain.num_params
                behind_params = images.new_zeros(len(images), count)
        return Scene(
            sprite=sprite[:, None],
            sprite_params=of_sprite[:, None],
            layer_params=of_layer[:, None],
            occlusion=decomposer.compositor.occlusion(logits, decomposer.training),
            background=chosen,
            background_params=behind_params,
        )

    def _fit(
        self,
        images: Float[Tensor, "n C H W"],
        sprites: Float[Tensor, "K D h w"],
        poses: Poses,
        backdrops: Float[Tensor, "M C m"],
        costs: tuple[float, float],
    ) -> tuple[
        Int[Tensor, " n"], Float[Tensor, "n p"], Float[Tensor, "n C 4"], Int[Tensor, " n"]
    ]:
        """Return the sprite of each image, its pose, all tints, and the background."""
        height, width = images.shape[2:]
        points = canvas_points(height, width, like=images)
        whole = images.flatten(2)
        image = torch.arange(len(images), device=images.device)
        if self.window is None:
            view: View = Composite(sprites, whole[:, None], backdrops, self.inverts, costs)
            fitted = approach(view, poses, points, self.steps, self.costs)
            best = fitted.cost.argmin(1)
            pose, tints, behind = (one[image, best] for one in fitted[1:])
            return best, pose, tints, behind
        weights = self._weights(points * max(height, width) / 2)
        near = (weights > EDGE).nonzero()[:, 0]
        weights = weights[near] / weights[near].norm()
        view = Window(sprites, whole[:, None, :, near], weights, self.inverts, costs[0])
        fitted = approach(view, poses, points[near], self.steps, self.costs)
        best = fitted.cost.argmin(1)
        pose, given = fitted.pose[image, best], fitted.tints[image, best]
        placed = Composite(sprites[best], whole[None], backdrops, True, costs, given)
        look = placed.look(poses.pull(points, pose)[None])
        return best, pose, look.tints[0], look.background[0]

    def _weights(self, pixels: Float[Tensor, "m 2"]) -> Float[Tensor, " m"]:
        """Return how much the window lets through, so many pixels from its center."""
        tall, wide = self.window if isinstance(self.window, tuple) else (self.window,) * 2
        return torch.exp(-0.5 * (pixels / pixels.new_tensor([wide, tall])).square().sum(1))

    def _behind(
        self, decomposer: Decomposer, like: Tensor
    ) -> tuple[Float[Tensor, "M C m"], tuple[float, float]]:
        """Return the backdrops, and what it costs to tint sprites, and backdrops."""
        one = like.new_ones(1, decomposer.channels)
        count = decomposer.backgrounds.count if decomposer.backgrounds is not None else 0
        rest = like.new_zeros(1, count, decomposer.background_chain.num_params)
        backdrops = decomposer.show_backgrounds(rest)[0].flatten(2)
        sprite = FIXED if tint(decomposer, one, one) is None else self.tint_cost
        behind = decomposer.background_chain.tint(one, one) if count else None
        return backdrops, (sprite, FIXED if behind is None else self.tint_cost)


@hookimpl
def celstack_selectors() -> dict[str, type[Fitting]]:
    """Let recipes say ``use = "fitting"``."""
    return {"fitting": Fitting}
