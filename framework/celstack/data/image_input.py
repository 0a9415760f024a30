"""Images as users have them, converted to the input of a model.

Files and folders, Pillow images, arrays and tensors are accepted, one or many, of any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from celstack.data.images import center_crop, find_images, read_center_cropped
from celstack.errors import CelstackError
from celstack.text import describe_error, format_value

OneImage = Path | Image.Image | NDArray[Any]
"""A file, a Pillow image, or an array of height x width x channels."""
Images = Tensor | NDArray[Any] | Image.Image | str | Path | Iterable[Any]
"""One or more images: a batch, or an iterable of single images in any of these forms."""
CHANNELS = (1, 3, 4)
"""Gray, RGB, and RGB with alpha."""
RANGE_TOLERANCE = 1e-3
"""By how much values may exceed 0 to 1, as they do after some kinds of interpolation."""
ACCEPTED = "give files, Pillow images, arrays or tensors"


def to_batch(
    images: Images, image_shape: tuple[int, int, int], like: Tensor
) -> Float[Tensor, "B C H W"]:
    """Convert images to a batch from 0 to 1, each center-cropped and resized to one shape.

    Args:
        images: Any of

            - paths of image files, or of folders of them;
            - Pillow images;
            - arrays, N x H x W x C, or N x H x W in gray, or of one image;
            - tensors, N x C x H x W, or N x H x W in gray, or of one image: with three axes,
              the first of which is 1, 3 or 4, one image;
            - a list of single images in any of these forms.

            Integers are from 0 to 255 (``uint16``: to 65535), floats from 0 to 1. Where only
            the other axis can be that of the channels, arrays may have channels first and
            tensors last. Alpha is blended with white.
        image_shape: Channels, height and width of the batch.
        like: A tensor of the data type and on the device of the batch.

    Raises:
        CelstackError: Something is not an image; the message says which, and why.
    """
    fits = isinstance(images, Tensor) and images.shape[1:] == image_shape
    if isinstance(images, Tensor) and fits and images.is_floating_point():
        # Batches of datasets come here, too, whose values may be a little out of range.
        _check_range(images.detach(), "images", tolerance=1.0)
        return images.to(like)
    batch = [fit_image(image, image_shape) for image in list_images(images)]
    if not batch:
        raise CelstackError(f"images: there are none; {ACCEPTED}")
    return torch.stack(batch).to(like)


def list_images(images: Images) -> list[OneImage]:
    """List single images; folders are searched, and arrays and tensors split and checked."""
    return list(_iterate(images, "images", single=False))


def fit_image(image: OneImage, image_shape: tuple[int, int, int]) -> Float[Tensor, "C H W"]:
    """Convert one image to floats from 0 to 1, center-cropped and resized to a shape.

    An array of floats that has this shape already is not rounded to 8 bits.
    """
    channels, *size = image_shape
    canvas = (size[0], size[1])
    if isinstance(image, np.ndarray) and image.dtype != np.uint8:
        if image.shape == (*canvas, channels):
            return torch.tensor(image).permute(2, 0, 1)
        image = np.round(image.clip(0, 1) * 255).astype(np.uint8)
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)
    if isinstance(image, Path):
        pixels = np.array(read_center_cropped(image, canvas, channels))
    else:
        try:
            pixels = np.array(center_crop(image, canvas, channels))
        # Pillow reads files late, and damaged ones raise many kinds of exceptions.
        except Exception as error:
            raise CelstackError(f"{image}: cannot be read: {describe_error(error)}") from error
    return torch.from_numpy(pixels).view(*canvas, -1).permute(2, 0, 1) / 255


def _iterate(images: Any, place: str, single: bool) -> Iterator[OneImage]:
    if isinstance(images, str | Path):
        path = Path(images)
        yield from (file.path for file in find_images([path])[0])
    elif isinstance(images, Image.Image):
        yield images
    elif isinstance(images, Tensor):
        images = images.detach().cpu()
        array = (images.float() if images.is_floating_point() else images).numpy()
        yield from _split(array, place, channels_first=True, single=single)
    elif isinstance(images, np.ndarray | np.generic):
        yield from _split(np.asarray(images), place, channels_first=False, single=single)
    elif isinstance(images, Iterable) and not single:
        for index, image in enumerate(images):
            yield from _iterate(image, f"{place}[{index}]", single=True)
    else:
        raise CelstackError(f"{place}: {format_value(images)} is not an image; {ACCEPTED}")


def _split(
    array: NDArray[Any], place: str, channels_first: bool, single: bool
) -> list[NDArray[Any]]:
    """Split an array into images of height x width x channels, with values checked."""
    shape = array.shape
    text = f"{place}: an array of shape {shape}"
    if array.ndim not in (2, 3, 4):
        raise CelstackError(f"{text} is not images: it needs 2 to 4 axes")
    if 0 in shape[1:]:
        raise CelstackError(f"{text} has no pixels")
    axes = (-3, -1) if channels_first else (-1, -3)
    axis = None if array.ndim == 2 else next((a for a in axes if shape[a] in CHANNELS), None)
    if array.ndim == 3 and axis is None and shape[-1] == 2:
        raise CelstackError(f"{text} may be gray with alpha; blend it with a background first")
    if array.ndim == 4 and axis is None:
        raise CelstackError(f"{text} has no axis of 1, 3 or 4 channels")
    if array.ndim == 3 and axis == -3 and not (channels_first or single):
        if shape[0] == 3:
            ways = "give array[None] or array[..., None]"
            raise CelstackError(f"{text} may be one image or 3 gray ones; {ways}")
        axis = None
    array = _check_values(array, place)
    if axis is None:  # gray, one or many
        return list(array.reshape(-1, *shape[-2:], 1))
    array = np.moveaxis(array, axis, -1)
    return list(array if array.ndim == 4 else array[None])


def _check_values(array: NDArray[Any], place: str) -> NDArray[Any]:
    """Return values as uint8 or as floats from 0 to 1, or raise CelstackError."""
    kind = array.dtype.kind
    if array.dtype == np.uint16:
        return (array / 65535).astype(np.float32)
    if array.dtype == np.uint8 or kind == "b":
        return array if kind == "u" else array.astype(np.float32)
    if kind in "iu":
        if array.size and (array.min() < 0 or array.max() > 255):
            raise CelstackError(
                f"{place}: integers from {array.min()} to {array.max()}; they must be from "
                "0 to 255"
            )
        return array.astype(np.uint8)
    if kind != "f":
        raise CelstackError(f"{place}: values of type {array.dtype}; {ACCEPTED}")
    _check_range(torch.tensor(array), place)
    return array.astype(np.float32)


def _check_range(values: Tensor, place: str, tolerance: float = RANGE_TOLERANCE) -> None:
    if not values.numel():
        return
    low, high = (float(bound) for bound in values.aminmax())
    if not -tolerance <= low <= high <= 1 + tolerance:  # also if not a number
        hint = "; divide them by 255" if 2 < high <= 255 and low >= 0 else ""
        raise CelstackError(
            f"{place}: floats from {low:g} to {high:g}; they must be from 0 to 1{hint}"
        )
