"""Decompose images: write a folder for each, with its layers, maps and scene."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from PIL import Image
from torch import Tensor

from celstack.data.image_input import Images, OneImage, fit_image, list_images
from celstack.data.images import ImageFile, find_images
from celstack.errors import CelstackError
from celstack.evaluation.visualize import color_labels, on_checkerboard, tile, to_pil_image
from celstack.export.openraster import to_rgba, write_openraster
from celstack.export.scene_json import write_scene
from celstack.files import commit, staging_dir
from celstack.model.decomposer import Decomposer
from celstack.model.model_input import model_input
from celstack.scene import Rendering, Scene
from celstack.tensor_fields import map_tensors

Tensors = TypeVar("Tensors", Scene, Rendering)
SHEET_COLUMNS = 8
MIN_SHEET_CELL_PIXELS = 128
"""Smaller images are enlarged in sheets, by an integer factor, to about this size."""
MAX_OVERVIEW_IMAGES = 64
"""The overview shows only the first images."""


class NamedImage(NamedTuple):
    """An image to decompose.

    Attributes:
        image: The image, or its file.
        name: The relative folder for its decomposition.
        named: Whether the user named the file itself, not a folder that contains it.
    """

    image: OneImage
    name: Path
    named: bool


class DecodedBatch(NamedTuple):
    """Images that could be read, and where they come from."""

    sources: list[NamedImage]
    images: Float[Tensor, "B C H W"]


def read_images(images: Images, decomposer: Decomposer) -> Float[Tensor, "B C H W"]:
    """Convert images to the input of a model: cropped to its canvas, on its device.

    Args:
        images: Paths of files and folders, Pillow images, arrays (N x H x W x C) or tensors
            (N x C x H x W), one or many, of any size, gray or in color. Integers are from 0
            to 255, floats from 0 to 1.
        decomposer: The model.

    Example:
        >>> images = celstack.read_images(["photo.png", array, pillow_image], run.decomposer)
    """
    return model_input(decomposer, images)


def decompose(
    decomposer: Decomposer,
    images: Images | Sequence[ImageFile],
    out: str | Path,
    batch_size: int = 32,
    on_progress: Callable[[int, int], None] = lambda _written, _skipped: None,
) -> None:
    """Write a folder for every image, and an overview of the first ones.

    Args:
        decomposer: The model.
        images: What ``read_images`` takes. The folder of an image is named like its file,
            else by its number, as in ``image-0000``. In folders, damaged files are skipped.
        out: The folder for the results.
        batch_size: Images that are decomposed together.
        on_progress: Called for each image with how many more were written and skipped.

    Raises:
        CelstackError: No image, or none that the user named, can be read.

    Example:
        >>> celstack.decompose(celstack.open_run("runs/coins").decomposer, "photos", "parts")
    """
    out = Path(out)
    sources = _name_images(images, out)
    for source in sources:
        _refuse_overwrite(source, out, decomposer)
        on_progress(0, 0)
    sheets: list[Float[Tensor, "rows 3 H W"]] = []
    with staging_dir(out) as staging, torch.no_grad():
        for batch in _batches(sources, decomposer, batch_size, on_progress):
            scenes = decomposer.explain(batch.images)
            for index, source in enumerate(batch.sources):
                scene = scenes[index : index + 1]
                # Rendered one by one, so that `celstack render` gives bit-identical images.
                rendering = _to_cpu(decomposer.render(scene))
                image, scene = batch.images[index].cpu(), _to_cpu(scene)
                for name, picture in draw_parts(image, scene, rendering).items():
                    picture.save(staging / name)
                write_openraster(staging / "layers.ora", scene, rendering)
                write_scene(staging / "scene.json", scene, decomposer)
                _remove_old_layers(out / source.name)
                commit(staging, out / source.name)
                if len(sheets) < MAX_OVERVIEW_IMAGES:
                    sheets.append(_overview_column(image, rendering))
                on_progress(1, 0)
        if not sheets:
            reason = "all of them are damaged" if sources else "there are none"
            raise CelstackError(f"no image can be read: {reason}")
        contact_sheet(torch.stack(sheets)).save(staging / "overview.png")
        commit(staging, out)


def draw_parts(
    image: Float[Tensor, "C H W"], scene: Scene, rendering: Rendering
) -> dict[str, Image.Image]:
    """Draw an image, its reconstruction, label maps and layers; return them by file name."""
    pictures = {
        "input.png": to_pil_image(image),
        "reconstruction.png": to_pil_image(rendering.image[0]),
        "instances.png": _draw_ids(rendering.instances()[0]),
        "classes.png": _draw_ids(rendering.classes(scene)[0]),
    }
    for number, layer in enumerate(rendering.layers[0]):
        pictures[f"layer-{number}.png"] = to_rgba(layer)
    if scene.background is not None:
        pictures["background.png"] = to_pil_image(rendering.backdrop[0])
    return pictures


def contact_sheet(stacks: Float[Tensor, "n rows C h w"]) -> Image.Image:
    """Draw stacks of images side by side, in rows of up to eight stacks."""
    columns = min(SHEET_COLUMNS, len(stacks))
    blank = stacks.new_ones(-len(stacks) % columns, *stacks.shape[1:])
    lines = torch.cat([stacks, blank]).split(columns)
    return tile(
        torch.cat(lines, dim=1), max(1, MIN_SHEET_CELL_PIXELS // max(stacks.shape[-2:]))
    )


def _image_shape(decomposer: Decomposer) -> tuple[int, int, int]:
    return (decomposer.channels, *decomposer.canvas)


def _name_images(images: Images | Sequence[ImageFile], out: Path) -> list[NamedImage]:
    """List images with the names of their folders."""
    given: Any = [images] if isinstance(images, str | Path) else images
    if isinstance(given, Sequence) and all(isinstance(one, str | Path) for one in given):
        given = find_images(given, out)[0]
    if isinstance(given, Sequence) and all(isinstance(one, ImageFile) for one in given):
        return [NamedImage(*file) for file in given]
    found = enumerate(list_images(given))
    return [NamedImage(image, Path(f"image-{number:04d}"), True) for number, image in found]


def _batches(
    sources: Sequence[NamedImage],
    decomposer: Decomposer,
    batch_size: int,
    on_progress: Callable[[int, int], None],
) -> Iterator[DecodedBatch]:
    """Read images in batches."""
    for start in range(0, len(sources), batch_size):
        readable, images = [], []
        for source in sources[start : start + batch_size]:
            try:
                images.append(fit_image(source.image, _image_shape(decomposer)))
            except CelstackError:
                if source.named:
                    raise
                on_progress(0, 1)
                continue
            readable.append(source)
        if images:
            yield DecodedBatch(readable, read_images(torch.stack(images), decomposer))


def _refuse_overwrite(source: NamedImage, out: Path, decomposer: Decomposer) -> None:
    """Raise if the output folder holds the decomposition of another image."""
    before = out / source.name / "input.png"
    if not before.exists():
        return
    try:
        with Image.open(before, formats=["PNG"]) as picture:
            there = np.array(picture)
        here = np.array(to_pil_image(fit_image(source.image, _image_shape(decomposer))))
    except Exception:  # damaged: there is nothing to protect, or nothing to write
        return
    if not np.array_equal(there, here):
        name = source.image if isinstance(source.image, Path) else source.name
        raise CelstackError(
            f"{before.parent}: holds the decomposition of another image than {name}, "
            "or of another size; choose another --out"
        )


def _remove_old_layers(folder: Path) -> None:
    """Remove the layers of an earlier decomposition, which may have had more of them."""
    for path in [*folder.glob("layer-*.png"), folder / "background.png"]:
        path.unlink(missing_ok=True)


def _draw_ids(labels: Int[Tensor, "H W"]) -> Image.Image:
    """Draw labels as gray values: 8 bits, or 16 if there are too many."""
    return Image.fromarray(labels.numpy().astype("uint8" if labels.max() < 256 else "uint16"))


def _overview_column(
    image: Float[Tensor, "C H W"], rendering: Rendering
) -> Float[Tensor, "rows 3 H W"]:
    """Stack an image, its reconstruction, its instances and its layers."""
    pair = torch.stack([image, rendering.image[0]])
    rows = [pair, color_labels(rendering.instances()), on_checkerboard(rendering.layers[0])]
    return torch.cat([row.expand(-1, 3, -1, -1) for row in rows]).clamp(0, 1)


def _to_cpu(value: Tensors) -> Tensors:
    """Move all tensors to the CPU."""
    return map_tensors(Tensor.cpu, value)
