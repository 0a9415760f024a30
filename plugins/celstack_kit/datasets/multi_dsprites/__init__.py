"""Multi-dSprites: colored squares, ellipses and hearts that hide each other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from celstack import CelstackError, Source, hookimpl
from celstack.text import shown
from celstack_kit.dataset_support.cache_writer import Writer
from celstack_kit.dataset_support.labeled_image import Labeled
from celstack_kit.dataset_support.multi_object import BUCKET, HOMEPAGE, Scenes
from celstack_kit.dataset_support.object_records import Record
from celstack_kit.datasets.multi_dsprites.shapes import (
    NAMES,
    POSES,
    SIDE,
    Drawn,
    Poses,
    Published,
    Shapes,
)

CHUNK = 512
MOST = 10
"""Of more objects, there are hardly ever places at which none is hidden wholly."""


class MultiDsprites(Scenes):
    """Two to five shapes of dSprites in any color, on any gray: 64 x 64, not antialiased.

    ``objects`` is how many an image shows, or the least and the most; each number is equally
    frequent. They are generated: shape, one of 6 scales, 40 orientations and 32 x 32 places
    are drawn evenly, and so are gray and hue; saturation and value lie between a half and
    one. Later objects hide earlier ones, masks are what is left to see, and where an object
    would be hidden wholly, all of that image find other places. ``seed`` chooses the
    collection; the run's own seed does not change it. Images are kept in the user's cache.
    ``shapes`` names the ``.npz`` file of dSprites, to use its own images of the shapes.

    With ``source = "records"`` images are read from the published
    ``multi_dsprites_colored_on_grayscale.tfrecords`` (packed with gzip or not), with
    ``source = "folder"`` from the folders ``images``, ``masks`` and ``sem_masks`` of
    ``<number>.png``; both are looked for in ``root``, else in the folder that CELSTACK_DATA
    names, then in the user's cache. Images with another number of objects are left out. The
    first ``count`` of the others are for learning and the ``test_count`` after them for
    judging; the paper judged on the first 320 that it learned from.
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
        self.only_generated(shapes=shapes is not None, seed=seed != 0)
        self.least, self.most = (objects, objects) if isinstance(objects, int) else objects
        if not 1 <= self.least <= self.most <= MOST:
            text = f"must be 1 to {MOST}, or the least and the most of these"
            raise CelstackError(f"objects: {text}, not {shown(objects)}")
        self.shapes = None if shapes is None else shapes.expanduser()
        self.seed = seed
        self.most_objects = self.most
        # Nobody says how the classes of a folder are numbered.
        self.class_names = () if source == "folder" else NAMES

    def facts(self) -> Mapping[str, Any]:
        """Return all options that images depend on."""
        exact: list[Any] = []
        if self.shapes is not None:
            if not self.shapes.is_file():
                raise CelstackError(f"multi_dsprites: shapes: there is no file {self.shapes}")
            file = self.shapes.stat()
            exact = [str(self.shapes.resolve()), file.st_size, file.st_mtime_ns]
        return {"objects": [self.least, self.most], "seed": self.seed, "shapes": exact}

    def generate(self, split: str, writer: Writer) -> None:
        """Choose and paint some hundred images at a time, each time with its own seed."""
        shapes: Shapes = Drawn() if self.shapes is None else Published(self.shapes)
        total = self.counts[split]
        for chunk, start in enumerate(range(0, total, CHUNK)):
            random = np.random.default_rng([self.seed, self.splits.index(split), chunk])
            painted = self._paint(random, shapes)
            writer.add(*(array[: total - start] for array in painted))

    def from_record(self, record: Record) -> Labeled | None:
        """Take the shape of each entity as its class; published are 1, 2 and 3."""
        shape = record.features.get("shape")
        if shape is None or len(shape) != len(record.masks):
            raise CelstackError("no shape for each entity in it; is this the right file?")
        seen = record.masks.any(axis=(1, 2)) & (np.arange(len(shape)) > 0)
        if not np.isin(shape[seen], range(1, len(NAMES) + 1)).all():
            raise CelstackError(f"shapes are 1, 2 and 3, not {shape[seen].tolist()}")
        return self._if_wanted(record.label(np.where(seen, shape, 0)))

    def from_folder(self, published: Labeled) -> Labeled | None:
        """Take the image as it is."""
        whole = super().from_folder(published)
        return None if whole is None else self._if_wanted(whole)

    def _if_wanted(self, published: Labeled) -> Labeled | None:
        seen = np.count_nonzero(np.unique(published.instances))
        return published if self.least <= seen <= self.most else None

    def _paint(
        self, random: np.random.Generator, shapes: Shapes
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
        """Return images and their labels."""
        number = random.integers(self.least, self.most + 1, size=CHUNK)
        poses = random.integers(POSES, size=(CHUNK, self.most, len(POSES)))
        gray = random.integers(256, size=CHUNK)
        colors = _rgb(random.uniform([0, 0.5, 0.5], 1, size=(CHUNK, self.most, 3)))
        instances = _stack(shapes, poses, number)
        while len(hidden := np.flatnonzero(_seen(instances, self.most) < number)):
            # Only places are drawn again, so that every shape stays equally frequent.
            poses[hidden, :, 3:] = random.integers(POSES[3:], size=(len(hidden), self.most, 2))
            instances[hidden] = _stack(shapes, poses[hidden], number[hidden])
        # What an instance is: first the ground, then each object.
        image = np.arange(CHUNK)[:, None, None]
        ground = np.repeat(gray[:, None, None], 3, axis=2).astype(np.uint8)
        palette = np.concatenate([ground, colors], axis=1)
        kinds = np.pad(poses[:, :, 0] + 1, ((0, 0), (1, 0))).astype(np.uint8)
        return palette[image, instances], instances, kinds[image, instances]


def _stack(shapes: Shapes, poses: Poses, number: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Lay the shapes over each other, the last on top: which one is seen at each pixel."""
    instances = np.zeros((len(poses), SIDE, SIDE), np.uint8)
    for index in range(poses.shape[1]):
        here = np.flatnonzero(number > index)
        mask = shapes.masks(poses[here, index])
        instances[here] = np.where(mask, index + 1, instances[here])
    return instances


def _seen(instances: NDArray[np.uint8], most: int) -> NDArray[np.int64]:
    """Count the objects that can be seen in each image."""
    flat = instances.reshape(len(instances), -1)
    return np.sum([(flat == index).any(1) for index in range(1, most + 1)], axis=0)


def _rgb(colors: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Turn hue, saturation and value of [0, 1] into levels of red, green and blue."""
    hue, saturation, value = (colors[..., [channel]] for channel in range(3))
    # Each channel rises and falls with the hue, a third of the circle apart.
    place = (np.array([5, 3, 1]) + 6 * hue) % 6
    fall = np.clip(np.minimum(place, 4 - place), 0, 1)
    return np.round(255 * value * (1 - saturation * fall)).astype(np.uint8)


@hookimpl
def celstack_datasets() -> dict[str, type[MultiDsprites]]:
    """Let recipes say ``use = "multi_dsprites"``."""
    return {"multi_dsprites": MultiDsprites}
