"""Check what a dataset returns: each problem in one line that says how to mend it."""

from __future__ import annotations

import math
from numbers import Integral
from typing import TYPE_CHECKING, Any

from celstack.text import format_value

if TYPE_CHECKING:
    from celstack.interfaces.dataset import Batch, Dataset

MAX_CHANNELS = 3
"""Images with more channels cannot be drawn."""
RANGE_TOLERANCE = 1e-3
"""How far values may lie outside of [0, 1], because resizing may overshoot by rounding."""


def image_shape_problem(shape: Any) -> str:
    """Return what is wrong with the ``image_shape`` of a dataset; empty if nothing is."""
    told = f"image_shape is {format_value(shape)}"
    sides = tuple(shape) if isinstance(shape, tuple | list) else ()
    if len(sides) != 3 or not all(
        isinstance(side, Integral) and int(side) > 0 for side in sides
    ):
        return f"{told}; it must be three positive integers (C, H, W)"
    if sides[0] <= MAX_CHANNELS:
        return ""
    if sides[2] <= MAX_CHANNELS:
        turned = (sides[2], *sides[:2])
        return (
            f"{told}, which looks like (H, W, C); it must be (C, H, W) = {turned}, and read "
            "must return images.permute(0, 3, 1, 2)"
        )
    return f"{told}; it must be (C, H, W) with 1 to {MAX_CHANNELS} channels"


def batch_problem(dataset: Dataset, batch: Any, count: int) -> str:
    """Return the first law of Dataset that a batch breaks, and what to do; empty if none.

    Args:
        dataset: The dataset that returned the batch.
        batch: What its ``read`` returned.
        count: How many images it was asked for.
    """
    from celstack.interfaces.dataset import Batch

    if not isinstance(batch, Batch):
        return f"read returned {_described(batch)}; it must return a celstack.Batch"
    shape = (count, *dataset.image_shape)
    return _images_problem(batch.images, shape) or _truth_problem(batch, shape)


def _images_problem(images: Any, shape: tuple[int, ...]) -> str:
    import torch

    if not isinstance(images, torch.Tensor):
        return f"images is {_described(images)}; it must be a tensor"
    if tuple(images.shape) != shape:
        text = f"images have the shape {tuple(images.shape)}; it must be {shape}"
        moved = images.ndim == 4 and tuple(images.permute(0, 3, 1, 2).shape) == shape
        if moved:
            return f"{text}: return images.permute(0, 3, 1, 2)"
        return f"{text}, as many as were asked for, each of image_shape"
    wanted = torch.get_default_dtype()
    if images.dtype != wanted:
        scale = "" if images.is_floating_point() else " / 255"
        return (
            f"images are {_name(images.dtype)}; they must be {_name(wanted)}: return "
            f"images.to(torch.{_name(wanted)}){scale}"
        )
    low, high = (float(value) for value in images.aminmax())
    if not (math.isfinite(low) and math.isfinite(high)):
        return (
            "images hold values that are not finite (NaN or infinity); leave such images out, "
            "or repair them"
        )
    if low < -RANGE_TOLERANCE or high > 1 + RANGE_TOLERANCE:
        remedy = "divide them by 255" if low >= 0 and 2 < high <= 255 else "scale them to it"
        return f"images range from {low:g} to {high:g}; they must lie in [0, 1]: {remedy}"
    return ""


def _truth_problem(batch: Batch, shape: tuple[int, ...]) -> str:
    import torch

    count, _, *pixels = shape
    shapes = {"instances": (count, *pixels), "classes": (count, *pixels), "label": (count,)}
    for name, expected in shapes.items():
        labels = getattr(batch, name)
        if labels is None:
            continue
        if not isinstance(labels, torch.Tensor):
            return f"{name} is {_described(labels)}; it must be a tensor, or None if unknown"
        if tuple(labels.shape) != expected:
            return f"{name} has the shape {tuple(labels.shape)}; it must be {expected}"
        if labels.is_floating_point() or labels.is_complex():
            return f"{name} is {_name(labels.dtype)}; it must be int64: return {name}.long()"
        if labels.numel() and int(labels.min()) < 0:
            return f"{name} has negative labels; they must be 0 or more, 0 for background"
    return ""


def _described(value: object) -> str:
    return f"an object of type {type(value).__name__}"


def _name(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")
