"""Ordered: a fixed depth order of layers."""

from typing import Annotated

import torch
from annotated_types import Ge
from jaxtyping import Float
from torch import Tensor

from celstack import Compositor, hookimpl


class Ordered(Compositor):
    """Layers in fixed order: the first is at the back, the last occludes all others (Eq. 1)."""

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


@hookimpl
def celstack_compositors() -> dict[str, type[Ordered]]:
    """Let recipes say ``use = "ordered"``."""
    return {"ordered": Ordered}
