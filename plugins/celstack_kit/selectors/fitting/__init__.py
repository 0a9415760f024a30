"""Fitting: optimize pose and color of every sprite, and select the best one."""

from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float, Int
from torch import Tensor

from celstack import CelstackError, Decomposer, Scene, Selector, hookimpl
from celstack.geometry import pixel_centers
from celstack_kit.selector_support.tinting import tint_params
from celstack_kit.selectors.fitting.gauss_newton import MotionCosts, gauss_newton
from celstack_kit.selectors.fitting.pose_space import PoseSpace
from celstack_kit.selectors.fitting.residuals import (
    FIXED_COST,
    CompositeResiduals,
    ResidualModel,
    WindowResiduals,
)

MIN_WINDOW_WEIGHT = 0.08
"""Points at which the window's weight is lower are left out."""
MAX_CHUNK_VALUES = 2**24
"""Images are processed in chunks of about this many intermediate values."""


class Fitting(Selector):
    """Fit every sprite to an image by Gauss-Newton, and select the one with the lowest cost.

    For images of one object each. From the rest pose, the parameters of warps are optimized
    by ``steps`` Gauss-Newton steps; gains and offsets of sprite and background colors follow
    in closed form. ``move_cost`` is the cost of moving all points by half a canvas, quadratic
    in the distance, as a share of the image's variance: it keeps sprites from explaining what
    is around the object. ``bend_cost`` is added for the non-affine part of a motion.
    ``tint_cost`` is the cost of changing a gain or an offset by 1, quadratic, too.

    With a ``window``, sprites are selected by the center of the image alone: colors are
    compared under a Gaussian of that many pixels (or height, width), and masks and backgrounds
    are only used after the selection. With ``inverts``, color gains may be negative.

    No predictor is needed: only sprites and backgrounds have parameters. Backgrounds are not
    warped.
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
        self.costs = MotionCosts(move_cost, bend_cost)
        self.tint_cost = tint_cost
        self.window = window
        self.inverts = inverts

    def check(self, decomposer: Decomposer) -> None:
        """Raise CelstackError if the model has more than one layer."""
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
        """Fit every sprite to every image, in chunks of images."""
        space, sprites = PoseSpace(decomposer), decomposer.sprite_images()
        backdrops, costs = self._backdrops(decomposer, images)
        each = images.shape[1:].numel() * len(sprites) * (space.count + 4 * len(backdrops))
        fits = [
            self._fit(some, sprites, space, backdrops, costs)
            for some in images.split(max(1, MAX_CHUNK_VALUES // each))
        ]
        sprite, pose, tints, background = (torch.cat(one) for one in zip(*fits, strict=True))
        of_sprite, of_layer = space.to_params(pose)
        tinted = tint_params(decomposer, tints[:, :, 0], tints[:, :, 1])
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
        space: PoseSpace,
        backdrops: Float[Tensor, "M C m"],
        costs: tuple[float, float],
    ) -> tuple[
        Int[Tensor, " n"], Float[Tensor, "n p"], Float[Tensor, "n C 4"], Int[Tensor, " n"]
    ]:
        """Return the selected sprite, pose, tints and background of each image."""
        height, width = images.shape[2:]
        points = pixel_centers(height, width, like=images)
        whole = images.flatten(2)
        image = torch.arange(len(images), device=images.device)
        if self.window is None:
            model: ResidualModel = CompositeResiduals(
                sprites, whole[:, None], backdrops, self.inverts, costs
            )
            fitted = gauss_newton(model, space, points, self.steps, self.costs)
            best = fitted.cost.argmin(1)
            pose, tints, behind = (one[image, best] for one in fitted[1:])
            return best, pose, tints, behind
        weights = self._weights(points * max(height, width) / 2)
        near = (weights > MIN_WINDOW_WEIGHT).nonzero()[:, 0]
        weights = weights[near] / weights[near].norm()
        target = whole[:, None, :, near]
        model = WindowResiduals(sprites, target, weights, self.inverts, costs[0])
        fitted = gauss_newton(model, space, points[near], self.steps, self.costs)
        best = fitted.cost.argmin(1)
        pose, given = fitted.pose[image, best], fitted.tints[image, best]
        placed = CompositeResiduals(sprites[best], whole[None], backdrops, True, costs, given)
        residuals = placed.residuals(space.pull(points, pose)[None])
        return best, pose, residuals.tints[0], residuals.background[0]

    def _weights(self, pixels: Float[Tensor, "m 2"]) -> Float[Tensor, " m"]:
        """Return the Gaussian window at points in pixels from the center."""
        tall, wide = self.window if isinstance(self.window, tuple) else (self.window,) * 2
        return torch.exp(-0.5 * (pixels / pixels.new_tensor([wide, tall])).square().sum(1))

    def _backdrops(
        self, decomposer: Decomposer, like: Tensor
    ) -> tuple[Float[Tensor, "M C m"], tuple[float, float]]:
        """Return the rendered backgrounds, and the costs of tinting sprites and backgrounds."""
        one = like.new_ones(1, decomposer.channels)
        count = decomposer.backgrounds.count if decomposer.backgrounds is not None else 0
        rest = like.new_zeros(1, count, decomposer.background_chain.num_params)
        backdrops = decomposer.render_backgrounds(rest)[0].flatten(2)
        can_tint = tint_params(decomposer, one, one) is not None
        sprite = self.tint_cost if can_tint else FIXED_COST
        behind = decomposer.background_chain.tint(one, one) if count else None
        return backdrops, (sprite, FIXED_COST if behind is None else self.tint_cost)


@hookimpl
def celstack_selectors() -> dict[str, type[Fitting]]:
    """Let recipes say ``use = "fitting"``."""
    return {"fitting": Fitting}
