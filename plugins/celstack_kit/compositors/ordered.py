"""Ordered: layers are stacked as they are numbered."""

from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor

from celstack import Compositor, hookimpl


class Ordered(Compositor):
    """Fixed depth: the first layer is the farthest, the last hides all others (Eq. 1)."""

    def __init__(self, layers: Annotated[int, Ge(1)]) -> None:
        self.layers = layers

    def occlusion(
        self,
        logits: Float[Tensor, "B N"],
        training: bool,  # noqa: ARG002
    ) -> Float[Tensor, "B L L"]:
        """Return d_jl = [j > l], the same for all images."""
        hides = torch.ones(self.layers, self.layers).tril(-1)
        return hides.to(logits).expand(len(logits), -1, -1)

    def compose(
        self,
        layers: Float[Tensor, "B L D H W"],
        backdrop: Float[Tensor, "B C H W"],
        occlusion: Float[Tensor, "B L L"],  # noqa: ARG002
    ) -> tuple[Float[Tensor, "B C H W"], Float[Tensor, "B L H W"]]:
        """Lay each layer over what is behind it (Eq. 1)."""
        image = backdrop
        visible: list[Tensor] = []
        for colour, alpha in zip(
            layers[:, :, :-1].unbind(1), layers[:, :, -1:].unbind(1), strict=True
        ):
            image = alpha * colour + (1 - alpha) * image
            visible = [seen * (1 - alpha[:, 0]) for seen in visible] + [alpha[:, 0]]
        return image, torch.stack(visible, dim=1)


@hookimpl
def celstack_compositors() -> dict[str, type[Ordered]]:
    """Let recipes say ``use = "ordered"``."""
    return {"ordered": Ordered}
