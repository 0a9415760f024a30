"""CLEVR6: three to six objects on a gray ground, ray-traced."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt, Interval
from attrs import asdict
from PIL import Image

from celstack import CelstackError, Source, hookimpl
from celstack_kit.clevr.layout import CLASSES
from celstack_kit.clevr.renderer import Look
from celstack_kit.clevr.workers import RenderJob, available_cpus, render_chunks
from celstack_kit.dataset_support.cache_writer import CacheWriter
from celstack_kit.dataset_support.labeled_image import LabeledImage
from celstack_kit.dataset_support.multi_object import BUCKET, HOMEPAGE, MultiObjectDataset
from celstack_kit.dataset_support.object_records import ObjectRecord

DEFAULT_SAMPLES = 8
"""With the denoiser, more are hardly seen."""
DEFAULT_LOOK = Look()
PUBLISHED_SIZE = (240, 320)
CROP = (slice(29, 221), slice(64, 256))
"""The usual crop of a published image: rows and columns."""


class Clevr6(MultiObjectDataset):
    """Cubes, spheres and cylinders of rubber or metal; classes are these six combinations.

    Images have ``side`` x ``side`` pixels.

    They are generated as in CLEVR: eight colors, two sizes, soft shadows, jittered camera and
    lamps. ``objects`` is the number per image, or minimum and maximum; objects never touch,
    and each is visible enough. ``seed`` is the generator's; the run's seed does not change
    the images. Other images than CLEVR's have another ``ground`` (red, green, blue), ambient
    light (``sky``) or brightness of ``lamps``.

    Ray tracer and denoiser are an extra: ``pip install "celstack[clevr]"``. With the default of
    8 ``samples`` for each pixel, an image takes half a second of one core: on two cores
    ten minutes for the default ``count``, and two and a half hours for the 34,963 images of
    the paper. Without ``denoise``, images are noisy. All cores are used. Images are kept in
    the user's cache, also those of an interrupted run.

    With ``source = "records"`` images are read from the published
    ``clevr_with_masks_train.tfrecords`` (gzipped or not), with ``source = "folder"`` from the
    folders ``images``, ``masks`` and ``sem_masks`` of ``<number>.png``; both are searched for
    in ``root``, else in the folder that CELSTACK_DATA names, then in the user's cache. Images
    with more objects than the maximum of ``objects`` are left out. Images of 240 x 320 are
    cropped to the central 192 x 192 pixels and resized. The first ``count`` images are for
    training and the next ``test_count`` for evaluation; the paper evaluates on the first 320
    training images.
    """

    files = ("clevr_with_masks_train.tfrecords", "clevr6")
    sources = (
        Source(
            f"{BUCKET}/clevr_with_masks/clevr_with_masks_train.tfrecords",
            licence="see the homepage",
            homepage=HOMEPAGE,
        ),
    )
    record_size = PUBLISHED_SIZE

    max_objects: int

    def __init__(
        self,
        count: Annotated[int, Ge(1)] = 2000,
        test_count: Annotated[int, Ge(1)] = 320,
        objects: Annotated[int, Interval(ge=1, le=10)]
        | tuple[
            Annotated[int, Interval(ge=1, le=10)], Annotated[int, Interval(ge=1, le=10)]
        ] = (3, 6),
        side: Annotated[int, Ge(16)] = 128,
        samples: Annotated[int, Ge(1)] = 8,
        ground: tuple[
            Annotated[float, Interval(ge=0, le=1)],
            Annotated[float, Interval(ge=0, le=1)],
            Annotated[float, Interval(ge=0, le=1)],
        ] = (0.4, 0.4, 0.4),
        sky: Annotated[float, Ge(0)] = 0.19,
        lamps: Annotated[float, Gt(0)] = 1.0,
        denoise: bool = True,
        seed: Annotated[int, Ge(0)] = 0,
        source: Literal["generated", "records", "folder"] = "generated",
        root: Path | None = None,
        skip_broken: bool = False,
    ) -> None:
        super().__init__(source, root, count, test_count, skip_broken)
        self.look = Look(ground, sky, lamps, denoise)
        changed = (
            name
            for name, value in asdict(self.look).items()
            if value != getattr(DEFAULT_LOOK, name)
        )
        self.require_generated(
            samples=samples != DEFAULT_SAMPLES, seed=seed != 0, **dict.fromkeys(changed, True)
        )
        self.min_objects, self.max_objects = (
            (objects, objects) if isinstance(objects, int) else objects
        )
        if self.min_objects > self.max_objects:
            raise CelstackError(
                f"objects: from {self.min_objects} to {self.max_objects} is an empty range"
            )
        self.side, self.samples, self.seed = side, samples, seed
        # The numbering of published classes is not documented.
        self.class_names = CLASSES if source == "generated" else ()
        self._kinds: dict[tuple[int, int], int] = {}

    def cache_key(self) -> Mapping[str, Any]:
        """Return the options that the images depend on."""
        return {
            "objects": [self.min_objects, self.max_objects],
            "samples": self.samples,
            "seed": self.seed,
            "side": self.side,
            "look": asdict(self.look),
        }

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        return 3, self.side, self.side

    def generate(self, split: str, writer: CacheWriter) -> None:
        """Render the images of a split, except chunks finished before an interruption."""
        missing = [name for name in ("mitsuba", "mitsuba_oidn") if find_spec(name) is None]
        if missing:
            text = f'generating images needs {missing[0]}; pip install "celstack[clevr]"'
            raise CelstackError(f"{self.name}: {text}")
        number = self.splits.index(split)
        job = RenderJob(
            self.seed,
            number,
            self.min_objects,
            self.max_objects,
            self.samples,
            self.side,
            self.look,
        )
        with (
            _chunk_folder(writer) as folder,
            closing(
                render_chunks(job, self.counts[split], folder, available_cpus())
            ) as rendered,
        ):
            for chunk in rendered:
                writer.add(*chunk)

    def from_record(self, record: ObjectRecord) -> LabeledImage | None:
        """Number the pairs of material and shape in order of appearance, as classes."""
        seen = record.masks.any(axis=(1, 2)) & (np.arange(len(record.masks)) > 0)
        if np.count_nonzero(seen) > self.max_objects:
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
        return _crop(record.label(classes), self.side)

    def from_folder(self, published: LabeledImage) -> LabeledImage | None:
        """Crop an image that has the published size."""
        if np.count_nonzero(np.unique(published.instances)) > self.max_objects:
            return None
        if published.instances.shape == PUBLISHED_SIZE:
            published = _crop(published, self.side)
        return super().from_folder(published)


@contextmanager
def _chunk_folder(writer: CacheWriter) -> Iterator[Path]:
    """Yield a folder for chunks that survives an interruption, if the cache is writable."""
    if writer.folder is None:
        with tempfile.TemporaryDirectory(prefix="celstack-") as folder:
            yield Path(folder)
    else:
        kept = writer.folder.with_suffix(".chunks")
        yield kept
        shutil.rmtree(kept, ignore_errors=True)


def _crop(published: LabeledImage, side: int) -> LabeledImage:
    """Crop a published image and resize it to ``side`` x ``side`` pixels."""
    image, instances, classes = (Image.fromarray(array[CROP]) for array in published)
    size = (side, side)
    return LabeledImage(
        np.asarray(image.resize(size, Image.Resampling.BILINEAR)),
        np.asarray(instances.resize(size, Image.Resampling.NEAREST)),
        np.asarray(classes.resize(size, Image.Resampling.NEAREST)),
    )


@hookimpl
def celstack_datasets() -> dict[str, type[Clevr6]]:
    """Let recipes say ``use = "clevr6"``."""
    return {"clevr6": Clevr6}
