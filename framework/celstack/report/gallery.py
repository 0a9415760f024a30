"""The gallery: sprites, backgrounds and examples as pictures of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from celstack.evaluation.visualize import paint, to_picture
from celstack.interfaces.prototype import Prototype
from celstack.model.decomposer import Decomposer
from celstack.model.eval_mode import eval_mode
from celstack.report.embed import data_uri, thumbnail
from celstack.report.line_charts import colour_of
from celstack.runs.examples import Example
from celstack.scene import EMPTY, Rendering, Scene
from celstack.tensor_fields import map_tensors

Made = TypeVar("Made", Scene, Rendering)
KINDS = {
    "best": "Explained best",
    "worst": "Explained worst",
    "random": "Chosen at random",
}

THUMBNAIL = 32
"""The side of the smallest pictures."""


class SpriteCard(NamedTuple):
    """One sprite in pictures, and the colour that stands for it in maps."""

    number: int
    picture: str
    mask: str
    thumbnail: str
    colour: str


class Picture(NamedTuple):
    """A picture with its caption; what is transparent is shown on a checkerboard."""

    caption: str
    source: str
    see_through: bool = False


class ExampleCard(NamedTuple):
    """One image and what it was taken apart into."""

    number: int
    scores: str
    pictures: list[Picture]


class Group(NamedTuple):
    """Examples of one kind."""

    title: str
    cards: list[ExampleCard]

    @property
    def most(self) -> int:
        """The greatest number of pictures that an example has."""
        return max(len(card.pictures) for card in self.cards)


class Explained(NamedTuple):
    """Scenes of examples, and what they look like, on the CPU."""

    scene: Scene
    rendering: Rendering


@contextmanager
def looking(decomposer: Decomposer) -> Iterator[None]:
    """Use a model that may be learning, so that it does not notice."""
    device = next(decomposer.parameters()).device
    # Of many accelerators only this one is in use, and torch warns of asking all.
    devices = [device] if device.type == "cuda" else []
    with eval_mode(decomposer), torch.no_grad(), torch.random.fork_rng(devices):
        yield


def explain(
    decomposer: Decomposer, images: Float[Tensor, "B C H W"], batch_size: int
) -> Explained:
    """Explain examples, as many at a time as in an evaluation."""
    device = next(decomposer.parameters()).device
    with looking(decomposer):
        scenes = [decomposer.explain(some.to(device)) for some in images.split(batch_size)]
        renderings = [decomposer.render(scene) for scene in scenes]
    return Explained(_joined(scenes), _joined(renderings))


def show_sprites(decomposer: Decomposer) -> list[SpriteCard]:
    """Draw every sprite, its mask, and a small picture of it for tables."""
    return [
        SpriteCard(
            number,
            data_uri(to_picture(image)),
            data_uri(to_picture(image[-1:])),
            data_uri(thumbnail(to_picture(image), THUMBNAIL)),
            colour_of(number + 1),
        )
        for number, image in enumerate(_images(decomposer.sprites))
    ]


def show_backgrounds(decomposer: Decomposer, explained: Explained | None) -> list[Picture]:
    """Draw every background: as it was learned, and as examples show it on average."""
    if decomposer.backgrounds is None:
        return []
    pictures = []
    for number, image in enumerate(_images(decomposer.backgrounds)):
        pictures.append(
            Picture(f"background {number}, as learned", data_uri(to_picture(image[:-1])))
        )
        if explained is not None and explained.scene.background is not None:
            seen = explained.rendering.backdrop[explained.scene.background == number]
            if len(seen):
                source = data_uri(to_picture(seen.mean(0)))
                pictures.append(Picture(f"background {number}, as seen on average", source))
    return pictures


def show_examples(
    examples: Sequence[Example],
    images: Float[Tensor, "B C H W"],
    explained: Explained,
    names: Sequence[str],
    scores: Mapping[int, str],
) -> list[Group]:
    """Draw examples by their kinds, as in the paper's figures; no kind is empty."""
    groups = []
    for kind, title in KINDS.items():
        cards = [
            ExampleCard(
                example.number,
                scores.get(example.number, ""),
                _take_apart(place, images[place], explained, names),
            )
            for place, example in enumerate(examples)
            if example.kind == kind
        ]
        if cards:
            groups.append(Group(title, cards))
    return groups


def in_order(scene: Scene) -> bool:
    """Tell whether later layers hide earlier ones in all images."""
    layers = scene.occlusion.shape[1]
    return bool((scene.occlusion == torch.ones(layers, layers).tril(-1)).all())


def _take_apart(
    place: int, image: Float[Tensor, "C H W"], explained: Explained, names: Sequence[str]
) -> list[Picture]:
    scene = explained.scene[place : place + 1]
    rendering = explained.rendering[place : place + 1]
    pictures = [
        Picture("image", data_uri(to_picture(image))),
        Picture("reconstruction", data_uri(to_picture(rendering.image[0]))),
        Picture("kinds", data_uri(to_picture(paint(rendering.classes(scene))[0]))),
        Picture("objects", data_uri(to_picture(paint(rendering.instances())[0]))),
    ]
    if scene.background is not None:
        pictures.append(Picture("background", data_uri(to_picture(rendering.backdrop[0]))))
    for layer, sprite in enumerate(scene.sprite[0].tolist()):
        if sprite != EMPTY:
            source = data_uri(to_picture(rendering.layers[0, layer]))
            pictures.append(Picture(f"layer {layer + 1}: {names[sprite]}", source, True))
    return pictures


def _images(prototype: Prototype) -> Float[Tensor, "K D h w"]:
    with torch.no_grad():
        return prototype.images().detach().cpu()


def _joined(several: Sequence[Made]) -> Made:
    """Concatenate batches, on the CPU."""
    return map_tensors(lambda *values: torch.cat(values).cpu(), *several)
