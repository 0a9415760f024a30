"""CLEVR6: up to six solid bodies on a gray ground, ray-traced."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Interval
from PIL import Image

from celstack import CelstackError, Source, hookimpl
from celstack_kit.clevr.layout import CLASSES
from celstack_kit.clevr.workers import Job, chunks, processes
from celstack_kit.dataset_support.cache_writer import Writer
from celstack_kit.dataset_support.labeled_image import Labeled
from celstack_kit.dataset_support.multi_object import BUCKET, HOMEPAGE, Scenes
from celstack_kit.dataset_support.object_records import Record

PAPER_SIDE = 128
PUBLISHED = (240, 320)
CROP = (slice(29, 221), slice(64, 256))
"""The rows and columns of a published image that are kept, by everybody's convention."""


class Clevr6(Scenes):
    """Cubes, spheres and cylinders of rubber or metal; classes are these six.

    Images are squares of ``side`` pixels.

    They are generated, in the manner of CLEVR: eight colors, two sizes, soft shadows, camera
    and lamps a little different each time. ``objects`` is how many an image shows, or the
    least and the most; they never touch, and of each there is enough to see. ``seed`` chooses
    the collection; the run's own seed does not change it.

    The ray tracer is an extra: ``pip install "celstack[clevr]"``. With the default of 64
    ``samples`` for each pixel, an image takes 1.3 to 1.6 seconds of one core: on two cores
    half an hour for the default ``count``, and seven hours for the 34,963 images of the paper.
    A quarter of the samples takes a third of the time, for three times the noise. All cores are
    used. What was rendered before an interruption is kept, and so is the result, in the
    user's cache.

    With ``source = "records"`` images are read from the published
    ``clevr_with_masks_train.tfrecords`` (packed with gzip or not), with ``source = "folder"``
    from the folders ``images``, ``masks`` and ``sem_masks`` of ``<number>.png``; both are
    looked for in ``root``, else in the folder that CELSTACK_DATA names, then in the user's
    cache. Images with more objects than ``objects`` says are left out. Of one of 240 x 320, the
    192 x 192 pixels in the middle are kept and resized. The first ``count`` images are for
    learning and the ``test_count`` after them for judging; the paper judged on the first 320
    that it learned from.
    """

    files = ("clevr_with_masks_train.tfrecords", "clevr6")
    sources = (
        Source(
            f"{BUCKET}/clevr_with_masks/clevr_with_masks_train.tfrecords",
            licence="see the homepage",
            homepage=HOMEPAGE,
        ),
    )
    record_size = PUBLISHED

    def __init__(
        self,
        count: Annotated[int, Ge(1)] = 2000,
        test_count: Annotated[int, Ge(1)] = 320,
        objects: Annotated[int, Interval(ge=1, le=10)]
        | tuple[
            Annotated[int, Interval(ge=1, le=10)], Annotated[int, Interval(ge=1, le=10)]
        ] = (3, 6),
        side: Annotated[int, Ge(16)] = 128,
        samples: Annotated[int, Ge(1)] = 64,
        seed: Annotated[int, Ge(0)] = 0,
        source: Literal["generated", "records", "folder"] = "generated",
        root: Path | None = None,
        skip_broken: bool = False,
    ) -> None:
        super().__init__(source, root, count, test_count, skip_broken)
        self.only_generated(samples=samples != 64, seed=seed != 0)
        self.least, self.most = (objects, objects) if isinstance(objects, int) else objects
        if self.least > self.most:
            raise CelstackError(f"objects: from {self.least} to {self.most} there is no number")
        self.side, self.samples, self.seed = side, samples, seed
        self.most_objects = self.most
        # Nobody says how published classes are numbered.
        self.class_names = CLASSES if source == "generated" else ()
        self._kinds: dict[tuple[int, int], int] = {}

    def facts(self) -> Mapping[str, Any]:
        """Return all options that images depend on."""
        facts = {
            "objects": [self.least, self.most],
            "samples": self.samples,
            "seed": self.seed,
        }
        # Left out at its default, so that images kept by earlier versions are found again.
        return facts if self.side == PAPER_SIDE else {**facts, "side": self.side}

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Return channels, height, width."""
        return 3, self.side, self.side

    def generate(self, split: str, writer: Writer) -> None:
        """Render all images of a split, or those that were not before an interruption."""
        if find_spec("mitsuba") is None:
            text = 'images are generated with mitsuba; pip install "celstack[clevr]"'
            raise CelstackError(f"{self.name}: {text}")
        number = self.splits.index(split)
        job = Job(self.seed, number, self.least, self.most, self.samples, self.side)
        with (
            _chunk_folder(writer) as folder,
            closing(chunks(job, self.counts[split], folder, processes())) as rendered,
        ):
            for chunk in rendered:
                writer.add(*chunk)

    def from_record(self, record: Record) -> Labeled | None:
        """Make a class of each pair of material and shape, in the order of their appearance."""
        seen = record.masks.any(axis=(1, 2)) & (np.arange(len(record.masks)) > 0)
        if np.count_nonzero(seen) > self.most:
            return None
        codes = [record.features.get(name, np.zeros(0)) for name in ("material", "shape")]
        if any(len(code) != len(seen) for code in codes):
            raise CelstackError(
                "not a material and shape for each entity; is it the right file?"
            )
        classes = np.zeros(len(seen), np.uint8)
        for entity in np.flatnonzero(seen):
            kind = (int(codes[0][entity]), int(codes[1][entity]))
            if kind not in self._kinds and len(self._kinds) == len(CLASSES):
                text = f"a material and shape beyond {len(CLASSES)} pairs: {kind}"
                raise CelstackError(text)
            classes[entity] = self._kinds.setdefault(kind, len(self._kinds) + 1)
        return _cropped(record.label(classes), self.side)

    def from_folder(self, published: Labeled) -> Labeled | None:
        """Crop an image, unless somebody has before."""
        if np.count_nonzero(np.unique(published.instances)) > self.most:
            return None
        if published.instances.shape == PUBLISHED:
            published = _cropped(published, self.side)
        return super().from_folder(published)


@contextmanager
def _chunk_folder(writer: Writer) -> Iterator[Path]:
    """Name a folder that outlives an interruption, if the cache can be written."""
    if writer.folder is None:
        with tempfile.TemporaryDirectory(prefix="celstack-") as folder:
            yield Path(folder)
    else:
        kept = writer.folder.with_suffix(".chunks")
        yield kept
        shutil.rmtree(kept, ignore_errors=True)


def _cropped(published: Labeled, side: int) -> Labeled:
    """Keep the middle of a published image, resized to so many rows and columns."""
    image, instances, classes = (Image.fromarray(array[CROP]) for array in published)
    size = (side, side)
    return Labeled(
        np.asarray(image.resize(size, Image.Resampling.BILINEAR)),
        np.asarray(instances.resize(size, Image.Resampling.NEAREST)),
        np.asarray(classes.resize(size, Image.Resampling.NEAREST)),
    )


@hookimpl
def celstack_datasets() -> dict[str, type[Clevr6]]:
    """Let recipes say ``use = "clevr6"``."""
    return {"clevr6": Clevr6}
