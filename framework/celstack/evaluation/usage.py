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
        """List the sprites used less than ``below`` / K of the time.

        The time is that of all filled layers; or, where layers may be empty, that of the
        sprite used most.
        """
        counts = self.counts.tolist()
        whole = max(counts) if relative_to_most else sum(counts)
        # Where nothing was used, nothing can be said of anybody.
        return [k for k, used in enumerate(counts) if used < whole * below / len(counts)]

    def most_used(self) -> int:
        """Return the sprite used most."""
        return int(self.counts.argmax())

    def reset(self) -> None:
        """Begin to count anew."""
        self.counts.zero_()
