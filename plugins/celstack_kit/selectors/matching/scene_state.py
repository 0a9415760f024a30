"""A draft of scenes: layers that are exchanged one at a time while scenes are looked for."""

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from celstack import EMPTY, Decomposer, Scene
from celstack_kit.selectors.matching.placement import Placing
from celstack_kit.selectors.matching.search import Choice
from celstack_kit.selectors.matching.templates import Around

BETTER = 1e-4
"""What replaces a layer has to lower the squared error by so much more."""


class Draft:
    """Scenes as far as they are known, and what they show: B images, L layers.

    Convention: of two layers the later one hides the earlier.
    """

    def __init__(
        self,
        images: Float[Tensor, "B C H W"],
        decomposer: Decomposer,
        placing: Placing,
        noise: Float[Tensor, "K H W"] | None,
    ) -> None:
        self.images, self.decomposer, self.noise = images, decomposer, noise
        self.placing = placing
        outline = decomposer.outline()
        shape = (len(images), outline.layers)
        self.sprite = torch.full(shape, EMPTY, device=images.device)
        self.sprite_params = images.new_zeros(*shape, outline.sprite_params)
        self.layer_params = images.new_zeros(*shape, outline.layer_params)
        self.pose = images.new_zeros(*shape, 4)
        self.layers = images.new_zeros(*shape, images.shape[1] + 1, *images.shape[2:])
        self.background = torch.zeros_like(self.sprite[:, 0])
        self.background_params = images.new_zeros(len(images), outline.background_params)
        self.backdrop = torch.zeros_like(images)

    def around(self, layer: int, some: Int[Tensor, " n"]) -> Around:
        """Return what a layer of some images finds, as if it were not there yet.

        The layer after the last one is in front of all.
        """
        layers = self.layers[some]
        behind = stack(layers[:, :layer], self.backdrop[some])[0]
        front, left = stack(layers[:, layer + 1 :], torch.zeros_like(behind))
        hidden = left * behind
        return Around(self.images[some] - front - hidden, hidden, left)

    def offer(
        self,
        layer: int,
        some: Int[Tensor, " n"],
        around: Around,
        choice: Choice,
        price: float | None,
    ) -> Bool[Tensor, " n"]:
        """Put sprites on a layer of the images that they explain better; tell which these are.

        What counts is what rendering will show, noise included. ``price`` is that of a layer
        which is not empty; None where none may be.
        """
        params = self.placing.params(choice.pose, choice.gains)
        shown = show_alone(self.decomposer, choice.sprite, *params, self.noise)
        filled = self.sprite[some, layer] != EMPTY
        present, saved = around.saved(self.layers[some, layer]), around.saved(shown)
        lost = torch.zeros_like(filled)
        if price is None:
            present = present.masked_fill(~filled, -torch.inf)
        else:
            # What is there may have lost its worth since others changed.
            lost = filled & (present < price - BETTER)
            self._put(layer, some[lost], EMPTY, 0.0, 0.0, 0.0, 0.0)
            present = (present - price).masked_fill(~filled | lost, 0.0)
            saved = saved - price
        better = saved > present + BETTER
        values = (choice.sprite, *params, choice.pose, shown)
        self._put(layer, some[better], *(value[better] for value in values))
        return better | lost

    def _put(
        self, layer: int, images: Int[Tensor, " n"], *values: Tensor | float | int
    ) -> None:
        for field, value in zip(self._fields(), values, strict=True):
            field[images, layer] = value

    def sort(self, some: Int[Tensor, " n"], depth: Shaped[Tensor, "n L"]) -> None:
        """Take the layers of some images in the order of their depth, else as they are."""
        self.reorder(some, depth.argsort(dim=1, stable=True))

    def reorder(self, some: Int[Tensor, " n"], order: Int[Tensor, "n L"]) -> None:
        """Take the layers of some images in another order, from the back to the front."""
        for field in self._fields():
            field[some] = field[some[:, None], order]

    def take_better(self, other: "Draft", price: float) -> None:
        """Take the other draft's scenes where they explain better, at this price of a layer."""
        mine, others = (draft._cost(price) for draft in (self, other))
        better = others < mine - BETTER
        behind = ("background", "background_params", "backdrop")
        ours = (*self._fields(), *(getattr(self, name) for name in behind))
        theirs = (*other._fields(), *(getattr(other, name) for name in behind))
        for field, value in zip(ours, theirs, strict=True):
            field[better] = value[better]

    def _cost(self, price: float) -> Float[Tensor, " B"]:
        """Return the squared error, and what the layers cost."""
        errors = (self.images - stack(self.layers, self.backdrop)[0]).square().flatten(1).sum(1)
        return errors + price * (self.sprite != EMPTY).sum(1)

    def _fields(self) -> tuple[Tensor, ...]:
        return (self.sprite, self.sprite_params, self.layer_params, self.pose, self.layers)

    def scene(self) -> Scene:
        """Return the scenes, with layers where the compositor has them when at rest."""
        compositor, everyone = self.decomposer.compositor, torch.arange(len(self.sprite))
        logits = self.images.new_zeros(len(self.sprite), compositor.num_logits)
        occlusion = compositor.occlusion(logits, training=False)
        # A layer that hides n others is the n-th from the back.
        self.reorder(everyone.to(self.sprite), occlusion.sum(2).long())
        with_background = self.decomposer.backgrounds is not None
        return Scene(
            sprite=self.sprite,
            sprite_params=self.sprite_params,
            layer_params=self.layer_params,
            occlusion=occlusion,
            background=self.background if with_background else None,
            background_params=self.background_params if with_background else None,
        )


def show_alone(
    decomposer: Decomposer,
    sprite: Int[Tensor, " n"],
    sprite_params: Float[Tensor, "n P"],
    layer_params: Float[Tensor, "n Q"],
    noise: Float[Tensor, "K H W"] | None = None,
) -> Float[Tensor, "n D H W"]:
    """Show sprites, each on a canvas of its own, as rendering will."""
    alone = Scene(
        sprite=sprite[:, None],
        sprite_params=sprite_params[:, None],
        layer_params=layer_params[:, None],
        occlusion=layer_params.new_zeros(len(sprite), 1, 1),
    )
    windows, color, alpha = decomposer.show(alone, noise)
    return windows.spread(torch.cat([color, alpha[:, None]], dim=1))


def stack(
    layers: Float[Tensor, "n L D H W"], backdrop: Float[Tensor, "n C H W"]
) -> tuple[Float[Tensor, "n C H W"], Float[Tensor, "n 1 H W"]]:
    """Lay each layer over those before it; return the image, and what shows of the backdrop."""
    left = torch.ones_like(backdrop[:, :1])
    for layer in layers.unbind(1):
        alpha = layer[:, -1:]
        backdrop = torch.lerp(backdrop, layer[:, :-1], alpha)
        left = left * (1 - alpha)
    return backdrop, left
