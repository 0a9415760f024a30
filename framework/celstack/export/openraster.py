"""OpenRaster: a rendering as a layered picture that Krita, GIMP and others open."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from celstack.evaluation.visualize import to_pil_image
from celstack.scene import EMPTY, Rendering, Scene

STEP = 1 / 255
"""The finest difference that 8 bits can tell."""
THUMBNAIL = 256


class Cel(NamedTuple):
    """One layer of a picture, with transparency that is not multiplied into its colours."""

    name: str
    colour: Float[Tensor, "C H W"]
    alpha: Float[Tensor, "H W"]


def write_openraster(path: Path, scene: Scene, rendering: Rendering) -> None:
    """Write the rendering of one image; its layers, flattened, are the image."""
    cels = rounded(cels_of(scene, rendering), rendering.image[0])
    pictures = [to_rgba(torch.cat([cel.colour, cel.alpha[None]])) for cel in cels]
    merged = to_rgba(rendering.image[0])
    thumbnail = merged.copy()
    thumbnail.thumbnail((THUMBNAIL, THUMBNAIL))
    with ZipFile(path, "w") as archive:
        # The specification wants it first and not compressed, so that it is at a known place.
        archive.writestr(_entry("mimetype"), "image/openraster", ZIP_STORED)
        files = [(_source(number), picture) for number, picture in enumerate(pictures)]
        files += [("mergedimage.png", merged), ("Thumbnails/thumbnail.png", thumbnail)]
        archive.writestr(_entry("stack.xml"), _stack(cels, merged.size), ZIP_DEFLATED)
        for name, picture in files:
            buffer = io.BytesIO()
            picture.save(buffer, "png")
            archive.writestr(_entry(name), buffer.getvalue(), ZIP_STORED)


def to_rgba(image: Float[Tensor, "D h w"]) -> Image.Image:
    """Make a picture with four channels, whatever the image has."""
    return to_pil_image(image.cpu()).convert("RGBA")


def cels_of(scene: Scene, rendering: Rendering) -> list[Cel]:
    """Return the cels of one image, from the back, that plain 'over' makes the image of.

    Where layers are a true order, or would be if they touched, these are the whole layers.
    Where they hide one another by halves or in a circle, 'over' cannot say so. Then each
    cel is only the part of its layer that is seen, divided by what the cels in front of it
    let through; and where all hide each other, a black cel darkens the background.
    """
    colour, alpha = rendering.layers[0, :, :-1], rendering.layers[0, :, -1]
    backdrop, sprite = rendering.backdrop[0], scene.sprite[0].tolist()
    # The more others a layer hides, the nearer it is; in a true order that is the order.
    order = scene.occlusion[0].sum(1).argsort(stable=True).tolist()
    order = [layer for layer in order if sprite[layer] != EMPTY]
    names = [f"layer {layer}: sprite {sprite[layer]}" for layer in order]
    name = "black" if scene.background is None else f"background {int(scene.background[0])}"
    bottom = Cel(name, backdrop, torch.ones_like(alpha[0]))
    whole = [
        Cel(name, colour[layer], alpha[layer]) for name, layer in zip(names, order, strict=True)
    ]
    if (_stacked([bottom, *whole])[-1] - rendering.image[0]).abs().max() <= STEP / 2:
        return [bottom, *whole]
    through = torch.ones_like(alpha[0])
    parts: list[Cel] = []
    for name, layer in zip(reversed(names), reversed(order), strict=True):
        seen = rendering.visible[0, layer]
        parts.append(Cel(f"{name}, as seen", colour[layer], _share(seen, through)))
        through = (through - seen).clamp_min(0)
    darkness = 1 - _share((1 - alpha).prod(0), through)
    darkness = torch.where(through > 1e-6, darkness, 0.0)
    if darkness.max() > STEP / 2:
        parts.append(Cel("hidden by one another", torch.zeros_like(backdrop), darkness))
    return [bottom, *reversed(parts)]


def rounded(cels: Sequence[Cel], image: Float[Tensor, "C H W"]) -> list[Cel]:
    """Round cels to 8 bits so that 'over' still makes the image, but for two steps at most.

    What rounding takes from many cels adds up, and so does what learning leaves outside 0 and
    1. Where that is more than a step, a cel is made to hit the exact composite up to it. That
    holds for programs that round the composite after each cel, too.
    """
    targets = [*_stacked(cels)[:-1], image]
    flat = _round(targets[0] if len(cels) > 1 else image)
    result = [cels[0]._replace(colour=flat)]
    for cel, target in zip(cels[1:], targets[1:], strict=True):
        colour, alpha = _round(cel.colour), _round(cel.alpha)
        wanted = target.clamp(0, 1) - flat
        missed = (alpha * (colour - flat) - wanted).abs().amax(0) > STEP
        # No colour reaches farther than black or white do with this alpha.
        room = torch.where(wanted > 0, 1 - flat, flat).clamp_min(1e-6)
        least = (((wanted.abs() / room).amax(0) * 255 - 1e-3).ceil() / 255).clamp(0, 1)
        alpha = torch.where(missed, torch.maximum(alpha, least), alpha)
        exact = _round(flat + wanted / alpha.clamp_min(STEP))
        colour = torch.where(missed, exact, colour)
        flat = _round(flat + alpha * (colour - flat))
        result.append(Cel(cel.name, colour, alpha))
    return result


def _stacked(cels: Sequence[Cel]) -> list[Float[Tensor, "C H W"]]:
    """Return the composites up to each cel."""
    composites = [cels[0].colour]
    for cel in cels[1:]:
        composites.append(torch.lerp(composites[-1], cel.colour, cel.alpha))
    return composites


def _share(part: Float[Tensor, "H W"], of: Float[Tensor, "H W"]) -> Float[Tensor, "H W"]:
    return torch.where(of > 1e-6, part / of.clamp_min(1e-6), 0.0).clamp(0, 1)


def _round(values: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    return (values.clamp(0, 1) * 255).round() / 255


def _entry(name: str) -> ZipInfo:
    """Describe a file of the archive, without the time: the same picture is the same file."""
    entry = ZipInfo(name)
    entry.external_attr = 0o644 << 16
    return entry


def _source(number: int) -> str:
    return f"data/layer{number:03d}.png"


def _stack(cels: Sequence[Cel], size: tuple[int, int]) -> bytes:
    """Describe the layers; the first in the file is the topmost."""
    width, height = map(str, size)
    image = ElementTree.Element("image", version="0.0.3", w=width, h=height)
    stack = ElementTree.SubElement(image, "stack")
    for number, cel in reversed(list(enumerate(cels))):
        about = {"name": cel.name, "src": _source(number), "x": "0", "y": "0"}
        about |= {"opacity": "1.0", "visibility": "visible", "composite-op": "svg:src-over"}
        ElementTree.SubElement(stack, "layer", about)
    return ElementTree.tostring(image, encoding="UTF-8", xml_declaration=True)
