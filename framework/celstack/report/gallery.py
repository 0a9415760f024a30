"""The gallery of a report: pictures of sprites, backgrounds and examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from celstack.evaluation.visualize import color_labels, to_pil_image
from celstack.interfaces.prototype import Prototype
from celstack.model.decomposer import Decomposer
from celstack.model.eval_mode import eval_mode
from celstack.report.embed import data_uri, thumbnail
from celstack.report.line_charts import label_color
from celstack.runs.examples import Example
from celstack.scene import EMPTY, Rendering, Scene
from celstack.tensor_fields import map_tensors

Tensors = TypeVar("Tensors", Scene, Rendering)
KINDS = {
    "best": "Best scores",
    "worst": "Worst scores",
    "random": "Random selection",
}

THUMBNAIL_PIXELS = 32


class SpriteCard(NamedTuple):
    """Pictures of a sprite, and its color in label maps."""

    number: int
    picture: str
    mask: str
    thumbnail: str
    color: str


class Picture(NamedTuple):
    """A picture with its caption, optionally shown on a checkerboard."""

    caption: str
    source: str
    see_through: bool = False


class ExampleCard(NamedTuple):
    """Pictures of an image and its decomposition."""

    number: int
    scores: str
    pictures: list[Picture]


class ExampleGroup(NamedTuple):
    """Examples of one kind."""

    title: str
    cards: list[ExampleCard]

    @property
    def max_pictures(self) -> int:
        """The largest number of pictures of an example."""
        return max(len(card.pictures) for card in self.cards)


class Explained(NamedTuple):
    """Scenes of examples and their renderings, on the CPU."""

    scene: Scene
    rendering: Rendering


@contextmanager
def inference(decomposer: Decomposer) -> Iterator[None]:
    """Use a model in evaluation mode; its mode and the random state are restored."""
    device = next(decomposer.parameters()).device
    # Only the device in use, because torch warns when there are many.
    devices = [device] if device.type == "cuda" else []
    with eval_mode(decomposer), torch.no_grad(), torch.random.fork_rng(devices):
        yield


def explain(
    decomposer: Decomposer, images: Float[Tensor, "B C H W"], batch_size: int
) -> Explained:
    """Explain and render images in batches."""
    device = next(decomposer.parameters()).device
    with inference(decomposer):
        scenes = [decomposer.explain(some.to(device)) for some in images.split(batch_size)]
        renderings = [decomposer.render(scene) for scene in scenes]
    return Explained(_concatenate(scenes), _concatenate(renderings))


def show_sprites(decomposer: Decomposer) -> list[SpriteCard]:
    """Draw every sprite, its mask, and its thumbnail for tables."""
    return [
        SpriteCard(
            number,
            data_uri(to_pil_image(image)),
            data_uri(to_pil_image(image[-1:])),
            data_uri(thumbnail(to_pil_image(image), THUMBNAIL_PIXELS)),
            label_color(number + 1),
        )
        for number, image in enumerate(_images(decomposer.sprites))
    ]


def show_backgrounds(decomposer: Decomposer, explained: Explained | None) -> list[Picture]:
    """Draw every background: as learned, and as its mean over the examples."""
    if decomposer.backgrounds is None:
        return []
    pictures = []
    for number, image in enumerate(_images(decomposer.backgrounds)):
        pictures.append(
            Picture(f"background {number}, as learned", data_uri(to_pil_image(image[:-1])))
        )
        if explained is not None and explained.scene.background is not None:
            seen = explained.rendering.backdrop[explained.scene.background == number]
            if len(seen):
                source = data_uri(to_pil_image(seen.mean(0)))
                pictures.append(Picture(f"background {number}, mean of examples", source))
    return pictures


def show_examples(
    examples: Sequence[Example],
    images: Float[Tensor, "B C H W"],
    explained: Explained,
    names: Sequence[str],
    scores: Mapping[int, str],
) -> list[ExampleGroup]:
    """Draw examples grouped by kind; kinds without examples are omitted."""
    groups = []
    for kind, title in KINDS.items():
        cards = [
            ExampleCard(
                example.number,
                scores.get(example.number, ""),
                _draw_decomposition(index, images[index], explained, names),
            )
            for index, example in enumerate(examples)
            if example.kind == kind
        ]
        if cards:
            groups.append(ExampleGroup(title, cards))
    return groups


def is_ordered(scene: Scene) -> bool:
    """Return whether later layers occlude earlier ones in all images."""
    layers = scene.occlusion.shape[1]
    return bool((scene.occlusion == torch.ones(layers, layers).tril(-1)).all())


def _draw_decomposition(
    index: int, image: Float[Tensor, "C H W"], explained: Explained, names: Sequence[str]
) -> list[Picture]:
    scene = explained.scene[index : index + 1]
    rendering = explained.rendering[index : index + 1]
    pictures = [
        Picture("image", data_uri(to_pil_image(image))),
        Picture("reconstruction", data_uri(to_pil_image(rendering.image[0]))),
        Picture("sprites", data_uri(to_pil_image(color_labels(rendering.classes(scene))[0]))),
        Picture("objects", data_uri(to_pil_image(color_labels(rendering.instances())[0]))),
    ]
    if scene.background is not None:
        pictures.append(Picture("background", data_uri(to_pil_image(rendering.backdrop[0]))))
    for layer, sprite in enumerate(scene.sprite[0].tolist()):
        if sprite != EMPTY:
            source = data_uri(to_pil_image(rendering.layers[0, layer]))
            pictures.append(Picture(f"layer {layer + 1}: {names[sprite]}", source, True))
    return pictures


def _images(prototype: Prototype) -> Float[Tensor, "K D h w"]:
    with torch.no_grad():
        return prototype.images().detach().cpu()


def _concatenate(several: Sequence[Tensors]) -> Tensors:
    """Concatenate batches, on the CPU."""
    return map_tensors(lambda *values: torch.cat(values).cpu(), *several)
