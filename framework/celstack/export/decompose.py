"""Decompose image files: for each, a folder with all that its scene is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import attrs
import numpy as np
import torch
from jaxtyping import Float, Int
from PIL import Image
from torch import Tensor

from celstack.data.images import ImageFile, read_fitted
from celstack.errors import CelstackError
from celstack.evaluation.visualize import color_labels, on_checkerboard, tile, to_pil_image
from celstack.export.openraster import to_rgba, write_openraster
from celstack.export.scene_json import write_scene
from celstack.files import deliver, drafted
from celstack.model.decomposer import Decomposer
from celstack.scene import Rendering, Scene

Made = TypeVar("Made", Scene, Rendering)
COLUMNS = 8
LARGEST = 128
"""Images of a smaller side are enlarged in sheets."""
OVERVIEW = 64
"""No more images than these are drawn in the overview."""


class Read(NamedTuple):
    """Images that could be read, and as many files."""

    files: list[ImageFile]
    images: Float[Tensor, "B C H W"]


def read_images(
    paths: Iterable[str | Path], decomposer: Decomposer
) -> Float[Tensor, "B C H W"]:
    """Read image files of any size and mode as a model takes them, on its device."""
    return torch.stack([read_image(Path(path), decomposer) for path in paths])


def read_image(path: Path, decomposer: Decomposer) -> Float[Tensor, "C H W"]:
    """Read one image file, fitted to the model's canvas."""
    pixels = np.array(read_fitted(path, decomposer.canvas, decomposer.channels))
    image = torch.from_numpy(pixels).view(*decomposer.canvas, -1).permute(2, 0, 1)
    return image.to(next(decomposer.parameters())) / 255


def decompose(
    decomposer: Decomposer,
    files: Sequence[ImageFile],
    out: Path,
    batch_size: int,
    watch: Callable[[int, int], None] = lambda _done, _skipped: None,
) -> None:
    """Write a folder for every image, and an overview of the first ones.

    ``watch`` is told how many images were written, and how many left out because they are
    damaged, after each of them. A damaged file that was named by itself is a mistake.
    """
    for file in files:
        _refuse_another(file, out, decomposer)
        watch(0, 0)
    sheets: list[Float[Tensor, "rows 3 H W"]] = []
    with drafted(out) as draft, torch.no_grad():
        for batch in _batches(files, decomposer, batch_size, watch):
            scenes = decomposer.explain(batch.images)
            for index, file in enumerate(batch.files):
                scene = scenes[index : index + 1]
                # One by one, as from a file: the result is the same to the last bit.
                rendering = _on_cpu(decomposer.render(scene))
                image, scene = batch.images[index].cpu(), _on_cpu(scene)
                for name, picture in pictures_of(image, scene, rendering).items():
                    picture.save(draft / name)
                write_openraster(draft / "layers.ora", scene, rendering)
                write_scene(draft / "scene.json", scene, decomposer)
                _clear(out / file.name)
                deliver(draft, out / file.name)
                if len(sheets) < OVERVIEW:
                    sheets.append(_sheet(image, rendering))
                watch(1, 0)
        if not sheets:
            raise CelstackError("none of the images can be read: all of them are damaged")
        contact_sheet(torch.stack(sheets)).save(draft / "overview.png")
        deliver(draft, out)


def pictures_of(
    image: Float[Tensor, "C H W"], scene: Scene, rendering: Rendering
) -> dict[str, Image.Image]:
    """Draw one image and what it is made of, by the names of the files."""
    pictures = {
        "input.png": to_pil_image(image),
        "reconstruction.png": to_pil_image(rendering.image[0]),
        "instances.png": _ids(rendering.instances()[0]),
        "classes.png": _ids(rendering.classes(scene)[0]),
    }
    for number, layer in enumerate(rendering.layers[0]):
        pictures[f"layer-{number}.png"] = to_rgba(layer)
    if scene.background is not None:
        pictures["background.png"] = to_pil_image(rendering.backdrop[0])
    return pictures


def contact_sheet(stacks: Float[Tensor, "n rows C h w"]) -> Image.Image:
    """Draw stacks of images beside each other, in as many lines as it takes."""
    columns = min(COLUMNS, len(stacks))
    blank = stacks.new_ones(-len(stacks) % columns, *stacks.shape[1:])
    lines = torch.cat([stacks, blank]).split(columns)
    return tile(torch.cat(lines, dim=1), max(1, LARGEST // max(stacks.shape[-2:])))


def _batches(
    files: Sequence[ImageFile],
    decomposer: Decomposer,
    batch_size: int,
    watch: Callable[[int, int], None],
) -> Iterator[Read]:
    """Read images, as many at a time as are decomposed together."""
    for start in range(0, len(files), batch_size):
        whole, images = [], []
        for file in files[start : start + batch_size]:
            try:
                images.append(read_image(file.path, decomposer))
            except CelstackError:
                if file.named:
                    raise
                watch(0, 1)
                continue
            whole.append(file)
        if images:
            yield Read(whole, torch.stack(images))


def _refuse_another(file: ImageFile, out: Path, decomposer: Decomposer) -> None:
    """Refuse to write over what was made of another picture."""
    before = out / file.name / "input.png"
    if not before.exists():
        return
    try:
        with Image.open(before, formats=["PNG"]) as picture:
            there = np.array(picture)
        here = np.array(read_fitted(file.path, decomposer.canvas, decomposer.channels))
    except Exception:  # damaged, in one of many ways: nothing is lost, or nothing is written
        return
    if not np.array_equal(there, here):
        raise CelstackError(
            f"{before.parent}: holds another picture than {file.path}, or another size "
            "of it; choose another --out"
        )


def _clear(folder: Path) -> None:
    """Take away what another model made of an image: it may have had more layers."""
    for path in [*folder.glob("layer-*.png"), folder / "background.png"]:
        path.unlink(missing_ok=True)


def _ids(labels: Int[Tensor, "H W"]) -> Image.Image:
    """Draw numbers as they are, in grey: 8 bits, or 16 where they need it."""
    return Image.fromarray(labels.numpy().astype("uint8" if labels.max() < 256 else "uint16"))


def _sheet(image: Float[Tensor, "C H W"], rendering: Rendering) -> Float[Tensor, "rows 3 H W"]:
    """Lay out an image, its reconstruction, its instances and its layers."""
    seen = torch.stack([image, rendering.image[0]])
    rows = [seen, color_labels(rendering.instances()), on_checkerboard(rendering.layers[0])]
    return torch.cat([row.expand(-1, 3, -1, -1) for row in rows]).clamp(0, 1)


def _on_cpu(value: Made) -> Made:
    """Return the same tensors where pictures are made of them."""
    names = [field.name for field in attrs.fields(type(value))]
    moved: dict[str, Any] = {name: getattr(value, name) for name in names}
    moved = {name: old if old is None else old.cpu() for name, old in moved.items()}
    return attrs.evolve(value, **moved)
