"""Multi-dSprites: colored squares, ellipses and hearts that occlude each other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from celstack import CelstackError, Source, hookimpl
from celstack_kit.dataset_support.cache_writer import CacheWriter
from celstack_kit.dataset_support.count_range import parse_count_range
from celstack_kit.dataset_support.labeled_image import LabeledImage
from celstack_kit.dataset_support.multi_object import BUCKET, HOMEPAGE, MultiObjectDataset
from celstack_kit.dataset_support.object_records import ObjectRecord
from celstack_kit.datasets.multi_dsprites.shapes import (
    NAMES,
    POSES,
    SIDE,
    DrawnShapes,
    PoseIndices,
    PublishedShapes,
    ShapeMasks,
)

CHUNK_IMAGES = 512
MAX_OBJECTS = 10
"""With more objects, sampling hardly ever finds positions at which all are visible."""


class MultiDsprites(MultiObjectDataset):
    """Two to five shapes of dSprites in any color, on any gray: 64 x 64, not antialiased.

    ``objects`` is the number per image, or minimum and maximum; each number is equally
    frequent. They are generated: shape, one of 6 scales, 40 orientations and 32 x 32 positions
    are sampled uniformly, and so are gray level and hue; saturation and value lie in [0.5, 1].
    Later objects occlude earlier ones, and masks are of visible pixels; if an object would be
    fully occluded, the positions of that image are sampled again. ``seed`` is the generator's;
    the run's seed does not change the images, which are kept in the user's cache. ``shapes``
    is the path of dSprites' own ``.npz`` file, to use its shapes.

    With ``source = "records"`` images are read from the published
    ``multi_dsprites_colored_on_grayscale.tfrecords`` (gzipped or not), with
    ``source = "folder"`` from the folders ``images``, ``masks`` and ``sem_masks`` of
    ``<number>.png``; both are searched for in ``root``, else in the folder that CELSTACK_DATA
    names, then in the user's cache. Images with another number of objects are left out. The
    first ``count`` of the others are for training and the next ``test_count`` for evaluation;
    the paper evaluates on the first 320 training images.
    """

    files = ("multi_dsprites_colored_on_grayscale.tfrecords", "multi_dsprites")
    sources = (
        Source(
            f"{BUCKET}/multi_dsprites/multi_dsprites_colored_on_grayscale.tfrecords",
            licence="see the homepage",
            homepage=HOMEPAGE,
        ),
    )
    record_size = (SIDE, SIDE)
    image_shape = (3, SIDE, SIDE)

    max_objects: int

    def __init__(
        self,
        count: Annotated[int, Ge(1)] = 60_000,
        test_count: Annotated[int, Ge(1)] = 320,
        objects: int | tuple[int, int] = (2, 5),
        shapes: Path | None = None,
        seed: Annotated[int, Ge(0)] = 0,
        source: Literal["generated", "records", "folder"] = "generated",
        root: Path | None = None,
        skip_broken: bool = False,
    ) -> None:
        super().__init__(source, root, count, test_count, skip_broken)
        self.require_generated(shapes=shapes is not None, seed=seed != 0)
        bounds = parse_count_range("objects", objects, MAX_OBJECTS)
        self.min_objects, self.max_objects = bounds
        self.shapes = None if shapes is None else shapes.expanduser()
        self.seed = seed
        # The numbering of classes in folders is not documented.
        self.class_names = () if source == "folder" else NAMES

    def cache_key(self) -> Mapping[str, Any]:
        """Return the options that the images depend on."""
        exact: list[Any] = []
        if self.shapes is not None:
            if not self.shapes.is_file():
                raise CelstackError(f"multi_dsprites: shapes: there is no file {self.shapes}")
            file = self.shapes.stat()
            exact = [str(self.shapes.resolve()), file.st_size, file.st_mtime_ns]
        return {
            "objects": [self.min_objects, self.max_objects],
            "seed": self.seed,
            "shapes": exact,
        }

    def generate(self, split: str, writer: CacheWriter) -> None:
        """Generate the images of a split in chunks, each with a seed of its own."""
        shapes: ShapeMasks = (
            DrawnShapes() if self.shapes is None else PublishedShapes(self.shapes)
        )
        total = self.counts[split]
        for chunk, start in enumerate(range(0, total, CHUNK_IMAGES)):
            random = np.random.default_rng([self.seed, self.splits.index(split), chunk])
            sampled = self._sample_chunk(random, shapes)
            writer.add(*(array[: total - start] for array in sampled))

    def from_record(self, record: ObjectRecord) -> LabeledImage | None:
        """Use the shape of each entity, published as 1, 2 or 3, as its class."""
        shape = record.features.get("shape")
        if shape is None or len(shape) != len(record.masks):
            raise CelstackError("no shape for each entity in it; is this the right file?")
        seen = record.masks.any(axis=(1, 2)) & (np.arange(len(shape)) > 0)
        if not np.isin(shape[seen], range(1, len(NAMES) + 1)).all():
            raise CelstackError(f"shapes are 1, 2 and 3, not {shape[seen].tolist()}")
        return self._if_object_count_matches(record.label(np.where(seen, shape, 0)))

    def from_folder(self, published: LabeledImage) -> LabeledImage | None:
        """Keep an image if it has one of the wanted numbers of objects."""
        whole = super().from_folder(published)
        return None if whole is None else self._if_object_count_matches(whole)

    def _if_object_count_matches(self, published: LabeledImage) -> LabeledImage | None:
        seen = np.count_nonzero(np.unique(published.instances))
        return published if self.min_objects <= seen <= self.max_objects else None

    def _sample_chunk(
        self, random: np.random.Generator, shapes: ShapeMasks
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
        """Sample a chunk: images, instance maps, class maps."""
        number = random.integers(self.min_objects, self.max_objects + 1, size=CHUNK_IMAGES)
        poses = random.integers(POSES, size=(CHUNK_IMAGES, self.max_objects, len(POSES)))
        gray = random.integers(256, size=CHUNK_IMAGES)
        colors = _rgb(
            random.uniform([0, 0.5, 0.5], 1, size=(CHUNK_IMAGES, self.max_objects, 3))
        )
        instances = _stack_instances(shapes, poses, number)
        while len(
            hidden := np.flatnonzero(_count_visible(instances, self.max_objects) < number)
        ):
            # Only positions are sampled again, so that all shapes stay equally frequent.
            poses[hidden, :, 3:] = random.integers(
                POSES[3:], size=(len(hidden), self.max_objects, 2)
            )
            instances[hidden] = _stack_instances(shapes, poses[hidden], number[hidden])
        # Lookup tables by instance id: the background first, then each object.
        image = np.arange(CHUNK_IMAGES)[:, None, None]
        ground = np.repeat(gray[:, None, None], 3, axis=2).astype(np.uint8)
        palette = np.concatenate([ground, colors], axis=1)
        kinds = np.pad(poses[:, :, 0] + 1, ((0, 0), (1, 0))).astype(np.uint8)
        return palette[image, instances], instances, kinds[image, instances]


def _stack_instances(
    shapes: ShapeMasks, poses: PoseIndices, number: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Return the instance maps of shapes that occlude those before them."""
    instances = np.zeros((len(poses), SIDE, SIDE), np.uint8)
    for index in range(poses.shape[1]):
        here = np.flatnonzero(number > index)
        mask = shapes.masks(poses[here, index])
        instances[here] = np.where(mask, index + 1, instances[here])
    return instances


def _count_visible(instances: NDArray[np.uint8], max_objects: int) -> NDArray[np.int64]:
    """Return the number of visible objects in each image."""
    flat = instances.reshape(len(instances), -1)
    return np.sum([(flat == index).any(1) for index in range(1, max_objects + 1)], axis=0)


def _rgb(colors: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Convert HSV in [0, 1] to 8-bit RGB."""
    hue, saturation, value = (colors[..., [channel]] for channel in range(3))
    # Each channel is a trapezoid in the hue, a third of the circle apart.
    place = (np.array([5, 3, 1]) + 6 * hue) % 6
    fall = np.clip(np.minimum(place, 4 - place), 0, 1)
    return np.round(255 * value * (1 - saturation * fall)).astype(np.uint8)


@hookimpl
def celstack_datasets() -> dict[str, type[MultiDsprites]]:
    """Let recipes say ``use = "multi_dsprites"``."""
    return {"multi_dsprites": MultiDsprites}
