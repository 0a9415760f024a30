"""Sprites cropped at their own window before they are placed, as the authors do it.

    python tests/benchmarks/cropped.py RECIPE ...    (takes what curve.py takes)

Celstack composes all maps and samples once: a transform of the sprite may carry it out of its
layer's place. The authors sample twice, and what leaves the sprite's window in between is
lost. This runs a recipe in their way, so that both can be compared.
"""

from collections.abc import Callable
from typing import Any

import attrs
import curve
from jaxtyping import Float
from torch import Tensor

from celstack.geometry.sampling import points_meet_image
from celstack.model import candidates
from celstack.model import decomposer as model
from celstack.model import sprite_warp as sight


@attrs.frozen(eq=False)
class CroppedSight(sight.SpriteWarp):
    """A sight that also knows where its canvases look before sprites are transformed."""

    frame: Callable[[Tensor], Tensor] | None = None


plain_through, plain_look = sight.SpriteWarp.from_chains, sight.warp_sprites


def through(layer_chain: Any, layer_params: Tensor, *of_sprite: Any) -> sight.SpriteWarp:
    plain = plain_through(layer_chain, layer_params, *of_sprite)
    fields = {
        field.name: getattr(plain, field.name) for field in attrs.fields(sight.SpriteWarp)
    }
    return CroppedSight(**fields, frame=lambda points: layer_chain.pull(points, layer_params))


def look(
    images: Float[Tensor, "k D h w"], seen: CroppedSight, canvas: tuple[int, int]
) -> tuple[Any, Tensor]:
    windows, found = plain_look(images, seen, canvas)
    if len(found) == seen.canvases and images.shape[1] > 6:
        return windows, found  # sprites as channels: none has moved, nothing can be lost
    framed = seen.frame(sight._points(windows, images))
    inside = points_meet_image(framed, (images.shape[-2], images.shape[-1])).to(found)
    inside = inside.unflatten(1, (windows.height, windows.width))
    return windows, found * inside.repeat_interleave(len(found) // len(inside), 0)[:, None]


if __name__ == "__main__":
    sight.SpriteWarp.from_chains = staticmethod(through)
    model.warp_sprites = candidates.warp_sprites = look
    curve.main()
