"""Divergence: errors of numerical code that weights which are too large have caused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from celstack.errors import RunFailedError

MAX_WEIGHT = 1e6
"""Beyond it, products of colors, masks and their gradients leave the range of 32 bits."""


class DivergedError(RunFailedError):
    """Weights are so large, or not finite, that nothing can be computed with them."""


@contextmanager
def blame_divergence(model: nn.Module) -> Iterator[None]:
    """Raise DivergedError instead of errors of numerical code, if the weights diverged.

    Libraries report overflows in many ways, such as singular matrices or sizes that are not
    numbers, and none of them says that a learning rate is too high.
    """
    try:
        yield
    except (RuntimeError, ValueError, ArithmeticError) as error:
        text = _diverged_weight(model)
        if not text:
            raise
        raise DivergedError(f"{text}; try lower learning rates") from error


@torch.no_grad()
def _diverged_weight(model: nn.Module) -> str:
    """Describe the first weight that diverged; empty if there is none."""
    for name, weight in model.named_parameters():
        size = float(weight.abs().max()) if weight.numel() else 0.0
        if not size <= MAX_WEIGHT:
            return f"the weights of {name} are up to {size:.1e}, too large to compute with"
    return ""
