"""Read the TFRecords of the multi-object datasets: image, entity masks, entity features."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celstack import CelstackError
from celstack_kit.dataset_support.labeled_image import LabeledImage
from celstack_kit.formats.tf_example import Feature, parse_example
from celstack_kit.formats.tfrecord import records


class ObjectRecord(NamedTuple):
    """The decoded record; entity 0 is the background, and absent entities have empty masks."""

    image: NDArray[np.uint8]
    """(H, W, 3)."""
    masks: NDArray[np.bool_]
    """(entities, H, W): the visible pixels of each entity."""
    features: dict[str, Feature]
    """Other features, such as ``shape`` and ``visibility``: one or more numbers per entity."""

    def label(self, classes: NDArray[np.generic]) -> LabeledImage:
        """Return the image with its label maps; ``classes`` has the class id of each entity."""
        if len(classes) != len(self.masks):
            text = f"classes of {len(classes)} entities, but masks of {len(self.masks)}"
            raise CelstackError(text)
        entities = np.arange(len(self.masks), dtype=np.uint8)
        instances = (self.masks * entities[:, None, None]).max(0)
        known = np.where(entities > 0, classes, 0).astype(np.uint8)
        return LabeledImage(self.image, instances, known[instances])


def read_object_records(
    path: Path, size: tuple[int, int], convert: Callable[[ObjectRecord], LabeledImage | None]
) -> Iterator[LabeledImage | CelstackError]:
    """Yield the images of a TFRecord file, and errors in place of damaged records.

    Args:
        path: The file.
        size: Height and width of its images.
        convert: Makes a labeled image of a record; records for which it returns None are
            left out.
    """
    for number, data in enumerate(records(path), 1):
        if isinstance(data, CelstackError):
            yield data
            continue
        name = f"{path}, record {number}"
        try:
            converted = convert(_parse(data, size))
        except CelstackError as error:
            yield CelstackError(f"{name}: {error}")
            continue
        # Converting an infinite float to an integer raises OverflowError.
        except (ValueError, OverflowError) as error:
            yield CelstackError(f"{name}: damaged; no tf.train.Example ({error})")
            continue
        if converted is not None:
            yield converted


def _parse(data: bytes, size: tuple[int, int]) -> ObjectRecord:
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
    return ObjectRecord(image.reshape(height, width, 3), masks, features)


def _bytes(features: dict[str, Feature], name: str) -> NDArray[np.uint8]:
    found = features.pop(name, None)
    if found is None or found.dtype != np.uint8:
        raise CelstackError(f"no {name} in it; is this the right file?")
    return found.astype(np.uint8)
