"""Image files of users: found, named distinctly, and read at the size of a canvas."""

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

ALLOWED_FORMATS = (
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
"""Formats that are read. Some of Pillow's others, such as EPS, run external programs."""


class ImageFile(NamedTuple):
    """An image file.

    Attributes:
        path: The file.
        name: The relative folder for what is made of it; distinct among all found files.
        named: Whether the user named the file itself, not a folder that contains it.
    """

    path: Path
    name: Path
    named: bool


def find_images(
    sources: Sequence[str | Path], out: Path | None = None
) -> tuple[list[ImageFile], int]:
    """Find image files, and count the files that are not images.

    Hidden files, and everything in ``out``, are left out.

    Args:
        sources: Files, which must be images, and folders, which may contain other files.
        out: The folder for the output, if any.

    Returns:
        The images, with distinct names, and the number of other files in the folders.
    """
    found: dict[Path, ImageFile] = {}
    skipped = 0
    for source in map(Path, sources):
        if not source.exists():
            raise CelstackError(f"{source}: no such image or folder")
        for path in _walk_files(source, out) if source.is_dir() else [source]:
            top = source if source.is_dir() else source.parent
            try:
                _identify(path)
            except CelstackError:
                if path == source:
                    raise
                skipped += 1
                continue
            # A file that is reached by two paths is one image.
            found.setdefault(
                path.resolve(), ImageFile(path, path.relative_to(top), path == source)
            )
        if source.is_dir() and not _contains_image(found, source):
            raise CelstackError(f"{source}: no image in this folder")
    names = distinct_names({path: image.name for path, image in found.items()})
    images = zip(found.values(), names, strict=True)
    return [image._replace(name=name) for image, name in images], skipped


def read_center_cropped(path: Path, size: tuple[int, int], channels: int) -> Image.Image:
    """Read an image file as ``center_crop`` returns it."""
    with _open_image(path) as image:
        # Decode large JPEGs at a reduced size, which is much faster.
        image.draft(None, (2 * max(size), 2 * max(size)))
        return center_crop(image, size, channels)


def center_crop(image: Image.Image, size: tuple[int, int], channels: int) -> Image.Image:
    """Resize an image to cover a canvas of (height, width), and center-crop it.

    The EXIF orientation is applied, transparency is blended with white, and 16 bits are
    reduced to 8. One channel is gray, three are RGB.
    """
    height, width = size
    upright = _flatten(ImageOps.exif_transpose(image))
    plain = upright.convert("L" if channels == 1 else "RGB")
    return ImageOps.fit(plain, (width, height), Image.Resampling.BILINEAR)


@cache
def readable_formats() -> tuple[str, ...]:
    """Return the image formats that are read, for ``PIL.Image.open(formats=...)``."""
    Image.init()
    return tuple(kind for kind in ALLOWED_FORMATS if kind in Image.OPEN)


def _walk_files(folder: Path, out: Path | None) -> Iterator[Path]:
    """Yield the files below a folder in order, without hidden ones and the output folder."""

    def raise_error(error: OSError) -> None:
        raise CelstackError(f"{error.filename}: cannot be read: {error.strerror}") from error

    left_out = out.resolve() if out is not None else None
    for here, folders, files in os.walk(folder, onerror=raise_error):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and (Path(here) / name).resolve() != left_out
        )
        yield from (Path(here) / name for name in sorted(files) if not name.startswith("."))


def _contains_image(found: dict[Path, ImageFile], folder: Path) -> bool:
    return any(path.is_relative_to(folder.resolve()) for path in found)


def distinct_names(found: Mapping[Path, Path]) -> list[Path]:
    """Return a distinct name for each file: its given relative path, without extension.

    Where names would clash, they become relative to the common parent folder of all files.
    Where that does not help, as for a.png and a.jpg, they keep their extensions.

    Args:
        found: The given relative paths, by the resolved paths of the files.
    """
    names = list(found.values())
    if _duplicates(names):
        top = os.path.commonpath([path.parent for path in found])
        names = [path.relative_to(top) for path in found]
    duplicates = _duplicates(names)
    short = [
        name if _comparison_key(name) in duplicates else name.with_suffix("") for name in names
    ]
    # Files may be named a.png.jpg, a.png and a.jpg at once.
    return short if len({str(name).casefold() for name in short}) == len(short) else names


def _duplicates(names: Iterable[Path]) -> set[str]:
    """Return the names that occur twice on file systems that ignore case."""
    return {name for name, count in Counter(map(_comparison_key, names)).items() if count > 1}


def _comparison_key(name: Path) -> str:
    return str(name.with_suffix("")).casefold()


def _identify(path: Path) -> None:
    with _open_image(path):
        pass


@contextmanager
def _open_image(path: Path) -> Iterator[Image.Image]:
    """Open an image; raise errors inside the block as CelstackErrors that name the file."""
    try:
        with warnings.catch_warnings():
            # Pillow warns of large images; for far too large ones it raises an error.
            warnings.simplefilter("ignore")
            with Image.open(path, formats=readable_formats()) as image:
                yield image
    except UnidentifiedImageError:
        # Pillow's message contains a memory address.
        raise CelstackError(f"{path}: not an image, or of an unknown format") from None
    except OSError as error:
        raise CelstackError(f"{path}: cannot be read: {error.strerror or error}") from error
    # Damaged files raise many kinds of exceptions.
    except Exception as error:
        raise CelstackError(f"{path}: cannot be read: {describe_error(error)[:200]}") from error


def _flatten(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        import numpy as np

        # 16-bit gray, which Pillow would clip at 255.
        levels = np.asarray(image).astype(np.int64).clip(0, 65535)
        return Image.fromarray(np.round(levels / 257).astype(np.uint8))
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba)
    return image
