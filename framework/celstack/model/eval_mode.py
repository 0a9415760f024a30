"""Switch a model to evaluation mode for the length of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode, and back into its mode at the end, also on errors.

    Gradients are not switched off; add ``torch.no_grad()`` for that.

    Example:
        with eval_mode(decomposer), torch.no_grad():
            scene = decomposer.explain(images)
    """
    was_training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(was_training)
