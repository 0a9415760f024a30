"""Scenes in published TFRecords: an image, a mask for each entity, and what it is."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celstack import CelstackError
from celstack_kit.dataset_support.labeled_image import Labeled
from celstack_kit.formats.tf_example import Feature, parse_example
from celstack_kit.formats.tfrecord import records


class Record(NamedTuple):
    """What a record says; entity 0 is the background, and absent entities have no pixels."""

    image: NDArray[np.uint8]
    """(H, W, 3)."""
    masks: NDArray[np.bool_]
    """(entities, H, W): the pixels at which each entity is seen."""
    features: dict[str, Feature]
    """All else, such as ``shape`` and ``visibility``: a number for each entity, or several."""

    def label(self, classes: NDArray[np.generic]) -> Labeled:
        """Number the objects as the record does; ``classes`` has one for each entity."""
        if len(classes) != len(self.masks):
            text = f"classes of {len(classes)} entities, but masks of {len(self.masks)}"
            raise CelstackError(text)
        entities = np.arange(len(self.masks), dtype=np.uint8)
        instances = (self.masks * entities[:, None, None]).max(0)
        known = np.where(entities > 0, classes, 0).astype(np.uint8)
        return Labeled(self.image, instances, known[instances])


def record_scenes(
    path: Path, size: tuple[int, int], convert: Callable[[Record], Labeled | None]
) -> Iterator[Labeled | CelstackError]:
    """Read the scenes of a file one by one; a damaged one comes as the error that names it.

    ``convert`` makes a scene of a record with an image of ``size`` (height, width), or None
    where it is none of ours.
    """
    for number, data in enumerate(records(path), 1):
        if isinstance(data, CelstackError):
            yield data
            continue
        name = f"{path}, record {number}"
        try:
            scene = convert(_parse(data, size))
        except CelstackError as error:
            yield CelstackError(f"{name}: {error}")
            continue
        # An infinite number that should be a whole one is an overflow.
        except (ValueError, OverflowError) as error:
            yield CelstackError(f"{name}: damaged; no tf.train.Example ({error})")
            continue
        if scene is not None:
            yield scene


def _parse(data: bytes, size: tuple[int, int]) -> Record:
    features = parse_example(data)
    height, width = size
    image, mask = _bytes(features, "image"), _bytes(features, "mask")
    if len(image) != height * width * 3:
        text = f"an image of {len(image)} bytes, not {height} x {width} x 3"
        raise CelstackError(text)
    if not len(mask) or len(mask) % (height * width):
        raise CelstackError(f"masks of {len(mask)} bytes, which are no {height} x {width}")
    masks = mask.reshape(-1, height, width) > 127
    if len(masks) > 256:
        raise CelstackError(f"masks of {len(masks)} entities, but there are at most 256")
    return Record(image.reshape(height, width, 3), masks, features)


def _bytes(features: dict[str, Feature], name: str) -> NDArray[np.uint8]:
    found = features.pop(name, None)
    if found is None or found.dtype != np.uint8:
        raise CelstackError(f"no {name} in it; is this the right file?")
    return found.astype(np.uint8)
