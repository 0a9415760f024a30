"""check_prototype: the laws of Prototype."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch

from celstack.interfaces.prototype import Prototype
from celstack.testing.assertions import (
    check_gradients_reach,
    check_same_start,
    check_unprepared,
    close,
    require_law,
    seeded,
)

CANVAS = (9, 7)
COLOR_TOLERANCE = 0.5
"""How far outside [0, 1] initial colors may be."""


@seeded()
def check_prototype(prototype: Prototype, *, channels: Sequence[int] = (1, 3)) -> None:
    """Check the laws of Prototype, for sprites and for backgrounds.

    Args:
        prototype: A prototype that is not prepared.
        channels: Numbers of color channels to check it with.
    """
    check_unprepared(prototype)
    whole = prototype.views >= 1 and prototype.count % prototype.views == 0
    require_law(prototype, whole, "count is a multiple of views")
    for number in channels:
        for with_alpha in (True, False):
            prepared = _prepare(prototype, number, with_alpha)
            check_same_start(prepared, _prepare(prototype, number, with_alpha))
            _check_images(prepared, number, with_alpha)
            _check_allocate(prototype, prepared, number, with_alpha)
            if learned := [own for own in prepared.parameters() if own.requires_grad]:
                check_gradients_reach(prepared, prepared.images(), learned)
            _check_per_image(prepared)
            _check_redraw(prepared)


def _prepare(prototype: Prototype, channels: int, with_alpha: bool) -> Prototype:
    torch.manual_seed(1)
    prepared = copy.deepcopy(prototype)
    prepared.prepare(torch.rand(5, channels, *CANVAS), with_alpha)
    return prepared


def _check_allocate(
    prototype: Prototype, prepared: Prototype, channels: int, with_alpha: bool
) -> None:
    allocated = copy.deepcopy(prototype)
    allocated.allocate((channels, *CANVAS), with_alpha)
    shapes = [
        {name: value.shape for name, value in one.state_dict().items()}
        for one in (allocated, prepared)
    ]
    law = "allocate creates the same parameters as prepare, but names or shapes differ"
    require_law(prototype, shapes[0] == shapes[1], law)
    allocated.load_state_dict(prepared.state_dict())
    learn = [[own.requires_grad for own in one.parameters()] for one in (allocated, prepared)]
    law = "after allocate the same parameters learn as after prepare, but others do"
    require_law(prototype, learn[0] == learn[1], law)
    law = "with the same weights, images() are the same after allocate as after prepare"
    require_law(prototype, torch.equal(allocated.images(), prepared.images()), law)


def _check_images(prototype: Prototype, channels: int, with_alpha: bool) -> None:
    images = prototype.images()
    expected = (prototype.count, channels + 1)
    law = f"images() begins with the shape (count, channels + 1) = {expected}"
    shaped = images.ndim == 4 and images.shape[:2] == expected
    require_law(prototype, shaped, f"{law}, but it is {tuple(images.shape)}")
    size = tuple(images.shape[2:])
    law = f"size is the height and width of images(), or None, but it is {prototype.size}"
    require_law(prototype, prototype.size in (None, size), f"{law} and images() are {size}")
    require_law(prototype, bool(images.isfinite().all()), "images() is finite")
    again = torch.equal(images, prototype.images())
    require_law(
        prototype, again, "images() are the images as they are now, but two calls differ"
    )
    colors, alpha = images[:, :-1], images[:, -1]
    near = (colors > -COLOR_TOLERANCE).all() and (colors < 1 + COLOR_TOLERANCE).all()
    require_law(prototype, bool(near), "colors start in or near [0, 1]")
    if not with_alpha:
        require_law(prototype, bool((alpha == 1).all()), "the alpha of backgrounds is 1")


def _check_per_image(prototype: Prototype) -> None:
    own = {id(parameter) for parameter in prototype.parameters()}
    listed = prototype.per_image()
    known = all(id(parameter) in own for parameter in listed)
    require_law(prototype, known, "per_image lists parameters of its own, but some are not")
    rows = all(len(parameter) == prototype.count for parameter in listed)
    require_law(prototype, rows, "parameters that per_image lists have the images along axis 0")
    if not listed:
        return
    order = torch.arange(prototype.count).roll(1)
    with torch.no_grad():
        for parameter in listed:  # images may start alike; then a swap would show nothing
            parameter.add_(0.1 * torch.rand_like(parameter))
        before = prototype.images().clone()
        for parameter in listed:
            parameter.copy_(parameter[order].clone())
        after = prototype.images()
    law = "swapping the rows of what per_image lists swaps the images, but it did not"
    require_law(prototype, close(after, before[order]), law)


def _check_redraw(prototype: Prototype) -> None:
    before = prototype.images().detach().clone()
    drawn = 0.2 + 0.6 * torch.rand_like(before[-1])
    if bool((before[:, -1] == 1).all()):
        drawn[-1] = 1.0  # a background stays opaque
    if not prototype.redraw(prototype.count - 1, drawn):
        return
    after = prototype.images()
    law = "redraw replaces one image and does not change the others"
    require_law(prototype, close(after[-1], drawn) and close(after[:-1], before[:-1]), law)
