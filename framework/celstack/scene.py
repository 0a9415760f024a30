"""Scene and Rendering: what images are made of, and the images."""

from __future__ import annotations

from typing import Any

import attrs
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from celstack.tensor_fields import map_tensors

EMPTY = -1
"""The index in ``Scene.sprite`` of a layer that shows no sprite."""


@attrs.frozen(eq=False)
class Scene:
    """How B images are composed of L layers each: sprites, parameters and occlusion.

    Convention: ``occlusion[:, j, l]`` is 1 where layer j hides layer l, and 0 on the
    diagonal; with a fixed depth, later layers hide earlier ones. ``background`` is None if
    the model has no backgrounds; the backdrop then is black.
    """

    sprite: Int[Tensor, "B L"]
    sprite_params: Float[Tensor, "B L P"]
    layer_params: Float[Tensor, "B L Q"]
    occlusion: Float[Tensor, "B L L"]
    background: Int[Tensor, " B"] | None = None
    background_params: Float[Tensor, "B R"] | None = None

    def evolve(self, **changes: Any) -> Scene:
        """Return a copy with some fields replaced, to edit images (paper, Fig. 5).

        For example, remove all sprites::

            backdrops = scene.evolve(sprite=torch.full_like(scene.sprite, EMPTY))
        """
        return attrs.evolve(self, **changes)

    @property
    def filled(self) -> Bool[Tensor, "B L"]:
        """Which layers show a sprite; the others are empty."""
        return self.sprite != EMPTY

    def __getitem__(self, images: Any) -> Scene:
        """Return the scenes of some images; ``images`` indexes the batch axis of tensors."""
        return map_tensors(lambda values: values[images], self)

    def __len__(self) -> int:
        return len(self.sprite)


@attrs.frozen(eq=False)
class Rendering:
    """The images of a scene, and the layers that they are composed of.

    ``layers`` hold color channels, then alpha; ``visible`` is the part of each layer's alpha
    that the other layers do not hide.
    """

    image: Float[Tensor, "B C H W"]
    layers: Float[Tensor, "B L D H W"]
    backdrop: Float[Tensor, "B C H W"]
    visible: Float[Tensor, "B L H W"]

    def __getitem__(self, images: Any) -> Rendering:
        """Return the renderings of some images; ``images`` indexes the batch axis."""
        return map_tensors(lambda values: values[images], self)

    def instances(self) -> Int[Tensor, "B H W"]:
        """Label each pixel with the layer visible there, counted from 1; 0 is background."""
        strength, layer = self.visible.max(dim=1)
        return (layer + 1) * (strength > 0.5)

    def classes(self, scene: Scene) -> Int[Tensor, "B H W"]:
        """Label each pixel with the sprite visible there, counted from 1; 0 is background."""
        instances = self.instances()
        # Sprites are counted from 1, so an EMPTY layer counts as background.
        sprite = pad(scene.sprite + 1, (1, 0))
        return sprite.gather(1, instances.flatten(1)).view_as(instances)
