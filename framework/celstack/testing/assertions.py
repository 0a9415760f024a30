"""What all checks share: how a broken law is told, and what sameness means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn


def demand(part: object, holds: bool, law: str) -> None:
    """Raise AssertionError unless the law holds, naming the part and the law."""
    # Not an assert statement: the checks must also work under `python -O`.
    if not holds:
        raise AssertionError(f"{type(part).__name__}: {law}")


@contextmanager
def seeded() -> Iterator[None]:
    """Make a check draw the same numbers each time, and leave the random state alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def varied_images(count: int, shape: tuple[int, int, int]) -> Float[Tensor, "B C H W"]:
    """Draw images of noise, each brighter than the one before it."""
    return torch.rand(count, *shape) * torch.linspace(0.2, 1.0, count)[:, None, None, None]


def close(left: Tensor, right: Tensor, tolerance: float = 1e-5) -> bool:
    """Tell whether two tensors are the same but for rounding; NaN is never the same."""
    return left.shape == right.shape and torch.allclose(left, right, atol=tolerance, rtol=1e-4)


def check_unprepared(part: nn.Module) -> None:
    """What learns is made in ``prepare``, so that parts may be made in any order."""
    made = [name for name, _ in part.named_parameters()]
    law = f"what learns is made in prepare, not in the constructor, but {made} is there before"
    demand(part, not made, law)


def check_same_start(part: nn.Module, other: nn.Module) -> None:
    """Two parts that were prepared alike, after the same seed, start alike."""
    left, right = part.state_dict(), other.state_dict()
    same = left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)
    demand(part, same, "prepare draws on nothing but torch's seed, but two starts differ")


def check_gradients_reach(
    part: nn.Module, output: Tensor, parameters: Sequence[nn.Parameter]
) -> None:
    """Every parameter has its part in the output, and some of them move it."""
    demand(part, output.requires_grad, "gradients reach its parameters, but none comes through")
    weights = torch.randn_like(output)
    found = torch.autograd.grad((output * weights).sum(), parameters, allow_unused=True)
    names = {id(parameter): name for name, parameter in part.named_parameters()}
    missed = [names[id(p)] for p, g in zip(parameters, found, strict=True) if g is None]
    demand(part, not missed, f"gradients reach its parameters, but not {missed}")
    moved = any(bool(gradient.any()) for gradient in found if gradient is not None)
    demand(part, moved, "gradients reach its parameters, but all are zero")
