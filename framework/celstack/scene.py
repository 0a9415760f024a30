"""Scenes and renderings: how an image is made, and the image."""

from __future__ import annotations

from typing import Any

import attrs
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

EMPTY = -1
"""Stands in ``Scene.sprite`` for a layer that shows nothing."""


@attrs.frozen(eq=False)
class Scene:
    """Everything about how B images are made from L layers each.

    Convention: layers are counted from the back; ``occlusion[:, j, l]`` is 1 where layer j
    hides layer l, and 0 on the diagonal. ``background`` is None where there is none, which
    is a black backdrop.
    """

    sprite: Int[Tensor, "B L"]
    sprite_params: Float[Tensor, "B L P"]
    layer_params: Float[Tensor, "B L Q"]
    occlusion: Float[Tensor, "B L L"]
    background: Int[Tensor, " B"] | None = None
    background_params: Float[Tensor, "B R"] | None = None

    def evolve(self, **changes: Any) -> Scene:
        """Return a scene with other values in some fields: editing, see the paper's Fig. 5."""
        return attrs.evolve(self, **changes)

    def __getitem__(self, images: Any) -> Scene:
        """Return the scenes of some of the images, as indexing a tensor would."""
        fields = {field.name: getattr(self, field.name) for field in attrs.fields(Scene)}
        some: dict[str, Any] = {k: v if v is None else v[images] for k, v in fields.items()}
        return Scene(**some)

    def __len__(self) -> int:
        return len(self.sprite)


@attrs.frozen(eq=False)
class Rendering:
    """The images of a scene, and what they are stacked from.

    ``layers`` hold colour, then alpha; ``visible`` is what remains of each layer's alpha
    when the layers in front have hidden their share.
    """

    image: Float[Tensor, "B C H W"]
    layers: Float[Tensor, "B L D H W"]
    backdrop: Float[Tensor, "B C H W"]
    visible: Float[Tensor, "B L H W"]

    def __getitem__(self, images: Any) -> Rendering:
        """Return the renderings of some of the images, as indexing a tensor would."""
        return Rendering(*(getattr(self, f.name)[images] for f in attrs.fields(Rendering)))

    def instances(self) -> Int[Tensor, "B H W"]:
        """Label each pixel with the layer seen there, counted from 1; 0 is background."""
        strength, layer = self.visible.max(dim=1)
        return (layer + 1) * (strength > 0.5)

    def classes(self, scene: Scene) -> Int[Tensor, "B H W"]:
        """Label each pixel with the sprite seen there, counted from 1; 0 is background."""
        instances = self.instances()
        # Sprites are counted from 1, so an EMPTY layer counts as background.
        sprite = pad(scene.sprite + 1, (1, 0))
        return sprite.gather(1, instances.flatten(1)).view_as(instances)
