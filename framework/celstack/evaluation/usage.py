"""Usage: how often each sprite is selected."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor


class Usage:
    """Counts how often each sprite fills a layer, over all layers."""

    def __init__(self, sprites: int, device: torch.device | str = "cpu") -> None:
        self.counts = torch.zeros(sprites, dtype=torch.int64, device=device)

    def add(self, sprite: Int[Tensor, "B L"]) -> None:
        """Count the sprites of a batch; empty layers do not count."""
        kinds = torch.arange(len(self.counts), device=sprite.device)
        self.counts += (sprite.flatten()[:, None] == kinds).sum(0)

    def unused(self, below: float, relative_to_most: bool) -> list[int]:
        """List the sprites whose count is less than ``below`` / K of a reference count.

        The reference is the count of all filled layers or, with ``relative_to_most`` (for
        models whose layers may be empty), that of the sprite used most.
        """
        counts = self.counts.tolist()
        reference = max(counts) if relative_to_most else sum(counts)
        # If no sprite was used, the reference is 0 and the list is empty.
        return [k for k, used in enumerate(counts) if used < reference * below / len(counts)]

    def most_used(self) -> int:
        """Return the sprite used most."""
        return int(self.counts.argmax())

    def reset(self) -> None:
        """Set all counts to zero."""
        self.counts.zero_()
