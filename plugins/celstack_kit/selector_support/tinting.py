"""Map gains and offsets of colors to the parameters of a model's transforms."""

from jaxtyping import Float
from torch import Tensor

from celstack import Decomposer


def tint_params(
    decomposer: Decomposer,
    gains: Float[Tensor, "n C"],
    offsets: Float[Tensor, "n C"] | None = None,
) -> tuple[Float[Tensor, "n P"], Float[Tensor, "n Q"]] | None:
    """Return the sprite and layer parameters that scale and shift colors.

    The layer transforms are used if one of them can tint, else the sprite transforms; all
    other parameters are 0. Return None if no transform can tint.
    """
    of_sprite, of_layer = decomposer.sprite_chain, decomposer.layer_chain
    tinted = of_layer.tint(gains, offsets)
    if tinted is not None:
        return gains.new_zeros(len(gains), of_sprite.num_params), tinted
    tinted = of_sprite.tint(gains, offsets)
    if tinted is not None:
        return tinted, gains.new_zeros(len(gains), of_layer.num_params)
    return None
