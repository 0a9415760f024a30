"""Write renderings as OpenRaster: layered images that Krita, GIMP and others open."""

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

LEVEL = 1 / 255
"""The difference between two adjacent 8-bit values."""
MAX_THUMBNAIL_PIXELS = 256


class Cel(NamedTuple):
    """One layer of an image, with straight (not premultiplied) alpha."""

    name: str
    color: Float[Tensor, "C H W"]
    alpha: Float[Tensor, "H W"]


def write_openraster(path: Path, scene: Scene, rendering: Rendering) -> None:
    """Write the rendering of one image; its flattened layers give the image."""
    cels = round_cels(make_cels(scene, rendering), rendering.image[0])
    pictures = [to_rgba(torch.cat([cel.color, cel.alpha[None]])) for cel in cels]
    merged = to_rgba(rendering.image[0])
    thumbnail = merged.copy()
    thumbnail.thumbnail((MAX_THUMBNAIL_PIXELS, MAX_THUMBNAIL_PIXELS))
    with ZipFile(path, "w") as archive:
        # The specification requires it first and uncompressed.
        archive.writestr(_entry("mimetype"), "image/openraster", ZIP_STORED)
        files = [(_source(number), picture) for number, picture in enumerate(pictures)]
        files += [("mergedimage.png", merged), ("Thumbnails/thumbnail.png", thumbnail)]
        archive.writestr(_entry("stack.xml"), _stack_xml(cels, merged.size), ZIP_DEFLATED)
        for name, picture in files:
            buffer = io.BytesIO()
            picture.save(buffer, "png")
            archive.writestr(_entry(name), buffer.getvalue(), ZIP_STORED)


def to_rgba(image: Float[Tensor, "D h w"]) -> Image.Image:
    """Convert an image of any number of channels to RGBA."""
    return to_pil_image(image.cpu()).convert("RGBA")


def make_cels(scene: Scene, rendering: Rendering) -> list[Cel]:
    """Return cels, back to front, that give the rendered image by the "over" operator.

    If the occlusion is a depth order wherever layers overlap, the cels are the whole layers.
    Otherwise, where layers hide one another partly or in a cycle, "over" cannot express it.
    Then each cel is the visible part of its layer, divided by the transmittance of the cels in
    front of it; where all layers hide each other, a black cel darkens the background.
    """
    color, alpha = rendering.layers[0, :, :-1], rendering.layers[0, :, -1]
    backdrop, sprite = rendering.backdrop[0], scene.sprite[0].tolist()
    # The more layers a layer hides, the nearer it is; this sorts a depth order.
    order = scene.occlusion[0].sum(1).argsort(stable=True).tolist()
    order = [layer for layer in order if sprite[layer] != EMPTY]
    names = [f"layer {layer}: sprite {sprite[layer]}" for layer in order]
    name = "black" if scene.background is None else f"background {int(scene.background[0])}"
    bottom = Cel(name, backdrop, torch.ones_like(alpha[0]))
    whole = [
        Cel(name, color[layer], alpha[layer]) for name, layer in zip(names, order, strict=True)
    ]
    if (_composites([bottom, *whole])[-1] - rendering.image[0]).abs().max() <= LEVEL / 2:
        return [bottom, *whole]
    transmittance = torch.ones_like(alpha[0])
    parts: list[Cel] = []
    for name, layer in zip(reversed(names), reversed(order), strict=True):
        visible = rendering.visible[0, layer]
        parts.append(
            Cel(f"{name}, visible part", color[layer], _safe_ratio(visible, transmittance))
        )
        transmittance = (transmittance - visible).clamp_min(0)
    darkness = 1 - _safe_ratio((1 - alpha).prod(0), transmittance)
    darkness = torch.where(transmittance > 1e-6, darkness, 0.0)
    if darkness.max() > LEVEL / 2:
        parts.append(Cel("hidden by one another", torch.zeros_like(backdrop), darkness))
    return [bottom, *reversed(parts)]


def round_cels(cels: Sequence[Cel], image: Float[Tensor, "C H W"]) -> list[Cel]:
    """Round cels to 8 bits so that "over" gives the image up to two levels of 255.

    Rounding errors of many cels add up, as do learned values outside 0 and 1. Where the sum
    exceeds one level, color and alpha of a cel are changed to give the exact composite up to
    it. This also holds for programs that round the composite after each cel.
    """
    targets = [*_composites(cels)[:-1], image]
    flat = _round(targets[0] if len(cels) > 1 else image)
    result = [cels[0]._replace(color=flat)]
    for cel, target in zip(cels[1:], targets[1:], strict=True):
        color, alpha = _round(cel.color), _round(cel.alpha)
        wanted = target.clamp(0, 1) - flat
        missed = (alpha * (color - flat) - wanted).abs().amax(0) > LEVEL
        # With a given alpha, no color changes the composite more than black or white.
        headroom = torch.where(wanted > 0, 1 - flat, flat).clamp_min(1e-6)
        min_alpha = (((wanted.abs() / headroom).amax(0) * 255 - 1e-3).ceil() / 255).clamp(0, 1)
        alpha = torch.where(missed, torch.maximum(alpha, min_alpha), alpha)
        exact = _round(flat + wanted / alpha.clamp_min(LEVEL))
        color = torch.where(missed, exact, color)
        flat = _round(flat + alpha * (color - flat))
        result.append(Cel(cel.name, color, alpha))
    return result


def _composites(cels: Sequence[Cel]) -> list[Float[Tensor, "C H W"]]:
    """Return the composite up to and including each cel."""
    composites = [cels[0].color]
    for cel in cels[1:]:
        composites.append(torch.lerp(composites[-1], cel.color, cel.alpha))
    return composites


def _safe_ratio(part: Float[Tensor, "H W"], of: Float[Tensor, "H W"]) -> Float[Tensor, "H W"]:
    return torch.where(of > 1e-6, part / of.clamp_min(1e-6), 0.0).clamp(0, 1)


def _round(values: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    return (values.clamp(0, 1) * 255).round() / 255


def _entry(name: str) -> ZipInfo:
    """Describe a file of the archive, without a time, so that archives are reproducible."""
    entry = ZipInfo(name)
    entry.external_attr = 0o644 << 16
    return entry


def _source(number: int) -> str:
    return f"data/layer{number:03d}.png"


def _stack_xml(cels: Sequence[Cel], size: tuple[int, int]) -> bytes:
    """Describe the layers as XML; the first one is the topmost."""
    width, height = map(str, size)
    image = ElementTree.Element("image", version="0.0.3", w=width, h=height)
    stack = ElementTree.SubElement(image, "stack")
    for number, cel in reversed(list(enumerate(cels))):
        about = {"name": cel.name, "src": _source(number), "x": "0", "y": "0"}
        about |= {"opacity": "1.0", "visibility": "visible", "composite-op": "svg:src-over"}
        ElementTree.SubElement(stack, "layer", about)
    return ElementTree.tostring(image, encoding="UTF-8", xml_declaration=True)
