"""Image files of anybody's: found, given names of their own, and fitted to a canvas."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageOps, UnidentifiedImageError

from celstack.errors import CelstackError
from celstack.text import describe_error

FORMATS = (
    "AVIF",
    "BMP",
    "GIF",
    "ICO",
    "JPEG",
    "JPEG2000",
    "PNG",
    "PPM",
    "QOI",
    "SGI",
    "TGA",
    "TIFF",
    "WEBP",
)
"""The kinds of images that are read; some of Pillow's others start programs on theirs."""


class ImageFile(NamedTuple):
    """An image, the folder that its output is for, and whether it was named by itself."""

    path: Path
    name: Path
    named: bool


def find_images(sources: Sequence[str | Path], out: Path) -> tuple[list[ImageFile], int]:
    """Find the images among files and in folders, and count the files that are none.

    A file that is named and no image is a mistake; one in a folder is left out. So are
    hidden files, and all that is in ``out``. No two images get the same name.
    """
    found: dict[Path, ImageFile] = {}
    skipped = 0
    for source in map(Path, sources):
        if not source.exists():
            raise CelstackError(f"{source}: there is no such image or folder")
        for path in _files_below(source, out) if source.is_dir() else [source]:
            top = source if source.is_dir() else source.parent
            try:
                _identify(path)
            except CelstackError:
                if path == source:
                    raise
                skipped += 1
                continue
            # The same file by another way is the same image.
            found.setdefault(
                path.resolve(), ImageFile(path, path.relative_to(top), path == source)
            )
        if source.is_dir() and not _holds(found, source):
            raise CelstackError(f"{source}: there is no image in this folder")
    names = distinct_names({path: image.name for path, image in found.items()})
    images = zip(found.values(), names, strict=True)
    return [image._replace(name=name) for image, name in images], skipped


def read_fitted(path: Path, size: tuple[int, int], channels: int) -> Image.Image:
    """Read an image for a canvas of (height, width), in grey or in colour.

    It is turned as its camera was, resized until it just covers the canvas, and cropped to its
    centre. What shows through is white; 16 bits become 8.
    """
    height, width = size
    with _opened(path) as image:
        # A large JPEG may be decoded smaller, which is much faster.
        image.draft(None, (2 * max(size), 2 * max(size)))
        upright = _without_alpha(ImageOps.exif_transpose(image))
        plain = upright.convert("L" if channels == 1 else "RGB")
    return ImageOps.fit(plain, (width, height), Image.Resampling.BILINEAR)


@cache
def formats() -> tuple[str, ...]:
    """Return the kinds of images that are read, as far as this Pillow has them."""
    Image.init()
    return tuple(kind for kind in FORMATS if kind in Image.OPEN)


def _files_below(folder: Path, out: Path) -> Iterator[Path]:
    """Go through a folder, in order, without what is hidden and without the output."""

    def refuse(error: OSError) -> None:
        raise CelstackError(f"{error.filename}: cannot be read: {error.strerror}") from error

    for here, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and (Path(here) / name).resolve() != out.resolve()
        )
        yield from (Path(here) / name for name in sorted(files) if not name.startswith("."))


def _holds(found: dict[Path, ImageFile], folder: Path) -> bool:
    return any(path.is_relative_to(folder.resolve()) for path in found)


def distinct_names(found: Mapping[Path, Path]) -> list[Path]:
    """Return the paths that were given for real paths, without endings; no two are the same.

    Where they would be, they start from the folder that holds all of them, and so mirror
    where files are; where that does not help, as for a.png and a.jpg, they keep their endings.
    """
    names = list(found.values())
    if _twins(names):
        top = os.path.commonpath([path.parent for path in found])
        names = [path.relative_to(top) for path in found]
    twins = _twins(names)
    short = [name if _folded(name) in twins else name.with_suffix("") for name in names]
    # Somebody may call an image a.png.jpg, and have an a.png and an a.jpg, too.
    return short if len({str(name).casefold() for name in short}) == len(short) else names


def _twins(names: Iterable[Path]) -> set[str]:
    """Return what is there twice, also where capitals are no difference."""
    return {name for name, count in Counter(map(_folded, names)).items() if count > 1}


def _folded(name: Path) -> str:
    return str(name.with_suffix("")).casefold()


def _identify(path: Path) -> None:
    with _opened(path):
        pass


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """Open an image, and tell whatever happens to it in one line."""
    try:
        with warnings.catch_warnings():
            # Large images are welcome; what is far too large is an error of Pillow's.
            warnings.simplefilter("ignore")
            with Image.open(path, formats=formats()) as image:
                yield image
    except UnidentifiedImageError:
        # Pillow's words name an address in memory.
        raise CelstackError(f"{path}: is not an image, or of no known kind") from None
    except OSError as error:
        raise CelstackError(f"{path}: cannot be read: {error.strerror or error}") from error
    # Files that are damaged fail in many ways.
    except Exception as error:
        raise CelstackError(f"{path}: cannot be read: {describe_error(error)[:200]}") from error


def _without_alpha(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        import numpy as np

        # Grey of 16 bits, which Pillow would cut off at 255.
        levels = np.asarray(image).astype(np.int64).clip(0, 65535)
        return Image.fromarray(np.round(levels / 257).astype(np.uint8))
    if image.has_transparency_data:
        seen = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen)
    return image
