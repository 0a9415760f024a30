"""Helpers of all checks: how a broken law is reported, and when tensors are equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn


def require_law(part: object, holds: bool, law: str) -> None:
    """Raise AssertionError unless the law holds, naming the part and the law."""
    # Not an assert statement: the checks must also work under `python -O`.
    if not holds:
        raise AssertionError(f"{type(part).__name__}: {law}")


@contextmanager
def seeded() -> Iterator[None]:
    """Seed torch for a check, and restore its random state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def varied_images(count: int, shape: tuple[int, int, int]) -> Float[Tensor, "B C H W"]:
    """Return images of noise, each brighter than the one before."""
    return torch.rand(count, *shape) * torch.linspace(0.2, 1.0, count)[:, None, None, None]


def close(left: Tensor, right: Tensor, tolerance: float = 1e-5) -> bool:
    """Return whether two tensors are equal up to rounding; NaN equals nothing."""
    return left.shape == right.shape and torch.allclose(left, right, atol=tolerance, rtol=1e-4)


def check_unprepared(part: nn.Module) -> None:
    """Check that parameters are created in ``prepare``, not in the constructor."""
    made = [name for name, _ in part.named_parameters()]
    law = f"parameters are created in prepare, not in the constructor, but {made} exist before"
    require_law(part, not made, law)


def check_same_start(part: nn.Module, other: nn.Module) -> None:
    """Check that two parts that were prepared after the same seed are equal."""
    left, right = part.state_dict(), other.state_dict()
    same = left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)
    require_law(
        part, same, "prepare depends on no random state but torch's seed, but two starts differ"
    )


def check_gradients_reach(
    part: nn.Module, output: Tensor, parameters: Sequence[nn.Parameter]
) -> None:
    """Check that the output depends on every parameter, with gradients that are not all 0."""
    require_law(
        part, output.requires_grad, "gradients reach its parameters, but the output has none"
    )
    weights = torch.randn_like(output)
    found = torch.autograd.grad((output * weights).sum(), parameters, allow_unused=True)
    names = {id(parameter): name for name, parameter in part.named_parameters()}
    missed = [names[id(p)] for p, g in zip(parameters, found, strict=True) if g is None]
    require_law(part, not missed, f"gradients reach its parameters, but not {missed}")
    moved = any(bool(gradient.any()) for gradient in found if gradient is not None)
    require_law(part, moved, "gradients reach its parameters, but all are zero")
