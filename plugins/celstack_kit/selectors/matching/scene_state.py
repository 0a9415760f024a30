"""The state of the search: scenes whose layers are replaced one at a time."""

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from celstack import EMPTY, Decomposer, Scene
from celstack_kit.selectors.matching.placement import Placement
from celstack_kit.selectors.matching.search import SpriteChoice
from celstack_kit.selectors.matching.templates import LayerContext

MIN_IMPROVEMENT = 1e-4
"""Minimum further reduction of the squared error for a change to be accepted."""


class SceneState:
    """Scenes of B images with L layers, and their rendered layers and backgrounds.

    Convention: layers are ordered from back to front; a later layer occludes an earlier one.
    ``indices`` in the methods select images of the batch.
    """

    def __init__(
        self,
        images: Float[Tensor, "B C H W"],
        decomposer: Decomposer,
        placement: Placement,
        noise: Float[Tensor, "K H W"] | None,
    ) -> None:
        self.images, self.decomposer, self.noise = images, decomposer, noise
        self.placement = placement
        outline = decomposer.outline()
        shape = (len(images), outline.layers)
        self.sprite = torch.full(shape, EMPTY, device=images.device)
        self.sprite_params = images.new_zeros(*shape, outline.sprite_params)
        self.layer_params = images.new_zeros(*shape, outline.layer_params)
        self.pose = images.new_zeros(*shape, placement.pose_size)
        self.layers = images.new_zeros(*shape, images.shape[1] + 1, *images.shape[2:])
        self.background = torch.zeros_like(self.sprite[:, 0])
        self.background_params = images.new_zeros(len(images), outline.background_params)
        self.backdrop = torch.zeros_like(images)

    def layer_context(self, layer: int, indices: Int[Tensor, " n"]) -> LayerContext:
        """Return what a layer is composited with, leaving out its current content.

        The index after the last one stands for a new layer in front of all others.
        """
        layers = self.layers[indices]
        behind = composite(layers[:, :layer], self.backdrop[indices])[0]
        front, transmittance = composite(layers[:, layer + 1 :], torch.zeros_like(behind))
        hidden = transmittance * behind
        return LayerContext(self.images[indices] - front - hidden, hidden, transmittance)

    def accept_if_better(
        self,
        layer: int,
        indices: Int[Tensor, " n"],
        context: LayerContext,
        choice: SpriteChoice,
        price: float | None,
    ) -> Bool[Tensor, " n"]:
        """Replace a layer by the chosen sprites where the objective decreases.

        The choice is rendered as in training, with mask noise, to compute the error.

        Args:
            layer: The layer to replace.
            indices: The images.
            context: What the layer is composited with in these images.
            choice: The sprite for each of these images.
            price: Cost of a layer that is not empty; None if layers must not be empty.

        Returns:
            In which of these images the layer was replaced, or emptied because its content no
            longer reduces the error by its price.
        """
        params = self.placement.params(choice.pose, choice.tint)
        rendered = render_layers(self.decomposer, choice.sprite, *params, self.noise)
        filled = self.sprite[indices, layer] != EMPTY
        present = context.error_reduction(self.layers[indices, layer])
        offered = context.error_reduction(rendered)
        dropped = torch.zeros_like(filled)
        if price is None:
            present = present.masked_fill(~filled, -torch.inf)
        else:
            # The layer may have become too expensive since other layers changed.
            dropped = filled & (present < price - MIN_IMPROVEMENT)
            self.empty_layer(layer, indices[dropped])
            present = (present - price).masked_fill(~filled | dropped, 0.0)
            offered = offered - price
        better = offered > present + MIN_IMPROVEMENT
        values = (choice.sprite, *params, choice.pose, rendered)
        self._set_layer(layer, indices[better], *(value[better] for value in values))
        return better | dropped

    def _set_layer(
        self, layer: int, indices: Int[Tensor, " n"], *values: Tensor | float | int
    ) -> None:
        for field, value in zip(self._layer_fields(), values, strict=True):
            field[indices, layer] = value

    def empty_layer(self, layer: int, indices: Int[Tensor, " n"]) -> None:
        """Remove the content of a layer."""
        self._set_layer(layer, indices, EMPTY, 0.0, 0.0, 0.0, 0.0)

    def save(self, indices: Int[Tensor, " n"]) -> tuple[Tensor, ...]:
        """Return a copy of the scenes of some images, for ``restore``."""
        return tuple(field[indices].clone() for field in self._all_fields())

    def restore(
        self, saved: tuple[Tensor, ...], indices: Int[Tensor, " n"], which: Bool[Tensor, " n"]
    ) -> None:
        """Restore saved scenes of some of these images."""
        for field, value in zip(self._all_fields(), saved, strict=True):
            field[indices[which]] = value[which]

    def sort_layers(self, indices: Int[Tensor, " n"], depth: Shaped[Tensor, "n L"]) -> None:
        """Sort the layers by depth, stably."""
        self.reorder_layers(indices, depth.argsort(dim=1, stable=True))

    def reorder_layers(self, indices: Int[Tensor, " n"], order: Int[Tensor, "n L"]) -> None:
        """Permute the layers; ``order`` lists their current positions from back to front."""
        for field in self._layer_fields():
            field[indices] = field[indices[:, None], order]

    def take_better(self, other: "SceneState", price: float) -> None:
        """Copy the other state's scenes where their objective, at this price, is lower."""
        everyone = torch.arange(len(self.images), device=self.images.device)
        mine, others = (state.objective(price, everyone) for state in (self, other))
        better = others < mine - MIN_IMPROVEMENT
        self.restore(other._all_fields(), everyone, better)

    def objective(self, price: float, indices: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Return the squared error plus the price of all layers that are not empty."""
        image = composite(self.layers[indices], self.backdrop[indices])[0]
        errors = (self.images[indices] - image).square().flatten(1).sum(1)
        return errors + price * (self.sprite[indices] != EMPTY).sum(1)

    def _all_fields(self) -> tuple[Tensor, ...]:
        return (*self._layer_fields(), self.background, self.background_params, self.backdrop)

    def _layer_fields(self) -> tuple[Tensor, ...]:
        return (self.sprite, self.sprite_params, self.layer_params, self.pose, self.layers)

    def scene(self) -> Scene:
        """Return the scenes, with layers permuted to the compositor's order for zero logits."""
        compositor, everyone = self.decomposer.compositor, torch.arange(len(self.sprite))
        logits = self.images.new_zeros(len(self.sprite), compositor.num_logits)
        occlusion = compositor.occlusion(logits, training=False)
        # The layer that occludes n others is the n-th from the back.
        self.reorder_layers(everyone.to(self.sprite), occlusion.sum(2).long())
        with_background = self.decomposer.backgrounds is not None
        return Scene(
            sprite=self.sprite,
            sprite_params=self.sprite_params,
            layer_params=self.layer_params,
            occlusion=occlusion,
            background=self.background if with_background else None,
            background_params=self.background_params if with_background else None,
        )


def render_layers(
    decomposer: Decomposer,
    sprite: Int[Tensor, " n"],
    sprite_params: Float[Tensor, "n P"],
    layer_params: Float[Tensor, "n Q"],
    noise: Float[Tensor, "K H W"] | None = None,
) -> Float[Tensor, "n D H W"]:
    """Render each sprite as the only layer of a canvas of its own: color and alpha."""
    alone = Scene(
        sprite=sprite[:, None],
        sprite_params=sprite_params[:, None],
        layer_params=layer_params[:, None],
        occlusion=layer_params.new_zeros(len(sprite), 1, 1),
    )
    windows, color, alpha = decomposer.render_layers(alone, noise)
    return windows.spread(torch.cat([color, alpha[:, None]], dim=1))


def composite(
    layers: Float[Tensor, "n L D H W"], backdrop: Float[Tensor, "n C H W"]
) -> tuple[Float[Tensor, "n C H W"], Float[Tensor, "n 1 H W"]]:
    """Blend layers over a backdrop, back to front; return image and transmittance.

    The transmittance is the share of the backdrop that stays visible.
    """
    transmittance = torch.ones_like(backdrop[:, :1])
    for layer in layers.unbind(1):
        alpha = layer[:, -1:]
        backdrop = torch.lerp(backdrop, layer[:, :-1], alpha)
        transmittance = transmittance * (1 - alpha)
    return backdrop, transmittance
