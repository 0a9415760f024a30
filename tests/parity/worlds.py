"""Small worlds in which the paper's method must learn as well as the authors' code does.

Each world is an assembly for a seed, and what the authors' published implementation reaches
in such a world with the same model, schedule and number of steps: the training loss (times
1000, the mean of 50 steps) after some steps, and the loss of evaluation in the end. The
authors' figures were measured on images of the same description, not on these very images.
What the descriptions of a letter and of two tetrominoes leave open was chosen, in
``fitted_letter`` and ``two``, so that the code of Celstack 0.1.0, trained here, comes near the
figures that were measured for 0.1.0 there, and not by what the present code reaches. Other
worlds were not fitted in this way; docs/paper.md has all figures.
"""

import colorsys
import math
from collections.abc import Callable, Sequence
from functools import cache

import attrs
import numpy as np
import torch
from PIL import Image, ImageDraw

from celstack import Assembly, Batch, Dataset, Evaluation, Stage, Training, Transforms
from celstack_kit.compositors.ordered import Ordered
from celstack_kit.datasets.gtsrb8 import Gtsrb8
from celstack_kit.datasets.tetrominoes import Tetrominoes
from celstack_kit.encoders.strided import Strided
from celstack_kit.metrics.accuracy import Accuracy
from celstack_kit.metrics.mse import Mse
from celstack_kit.predictors.network import Network
from celstack_kit.prototypes.pixels import Pixels
from celstack_kit.selectors.exhaustive import Exhaustive
from celstack_kit.selectors.greedy import Greedy
from celstack_kit.transforms.color import Color
from celstack_kit.transforms.position import Position
from celstack_kit.transforms.projective import Projective
from celstack_kit.transforms.similarity import Similarity
from celstack_kit.transforms.tps import Tps

SEEDS = (0, 1, 2)
OVERSAMPLED = 4
"""Images are drawn this many times larger and then reduced, so that edges are smooth."""


class Drawn(Dataset):
    """Images that are drawn on the spot; each is a function of split and index."""

    side: int

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return 3, self.side, self.side

    def count(self, split: str) -> int:
        return 4096 if split == "train" else 320

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        pixels = np.stack([self._pixels(split, index) for index in indices])
        return Batch(torch.from_numpy(pixels).movedim(-1, 1) / 255)

    @cache  # noqa: B019 - a few worlds, for as long as a benchmark or test takes
    def _pixels(self, split: str, index: int) -> np.ndarray:
        random = np.random.default_rng([self.splits.index(split), index])
        return np.asarray(self.draw(random))

    def draw(self, random: np.random.Generator) -> Image.Image:
        raise NotImplementedError


class Letters(Drawn):
    """One letter F to an image, on black: any hue, rotated, 0.85 to 1.15 of its size."""

    side = 32
    max_angle = math.radians(30)
    # Three strokes: left, top, right, bottom, in half canvases from the center.
    strokes = (
        (-0.37, -0.59, -0.12, 0.59),
        (-0.37, -0.59, 0.40, -0.34),
        (-0.37, -0.13, 0.24, 0.12),
    )

    def draw(self, random: np.random.Generator) -> Image.Image:
        size = OVERSAMPLED * self.side
        image = Image.new("RGB", (size, size))
        angle, scale = (
            random.uniform(-self.max_angle, self.max_angle),
            random.uniform(0.85, 1.15),
        )
        centre = random.uniform(-0.35, 0.35, 2)
        hue = colorsys.hsv_to_rgb(random.uniform(), 1.0, 1.0)
        turn = np.array(
            [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        )
        pen = ImageDraw.Draw(image)
        for left, top, right, bottom in self.strokes:
            corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
            placed = (scale * corners @ turn.T + centre + 1) * size / 2
            pen.polygon([*map(tuple, placed)], fill=tuple(round(255 * level) for level in hue))
        return image.reduce(OVERSAMPLED)


class FittedLetters(Letters):
    """The letter of 27 variants with which the code of 0.1.0 is nearest to its five figures.

    Angles, strokes and the range of places were not described. The figures are within 6 % of
    those that were measured; it is still harder than the letter described, because the loss of
    0.1.0 falls less from 1,000 to 2,000 steps.
    """

    max_angle = math.radians(20)
    strokes = (
        (-0.45, -0.6, -0.1, 0.6),
        (-0.45, -0.6, 0.45, -0.25),
        (-0.45, -0.199, 0.27, 0.151),
    )


class Signs(Drawn):
    """One of four traffic signs in perspective, in changing light, on a changing ground."""

    side = 28

    def draw(self, random: np.random.Generator) -> Image.Image:
        size = OVERSAMPLED * self.side
        ground = np.linspace(*random.uniform(0.05, 0.95, (2, 3)), size)
        ground = np.broadcast_to(ground[:, None], (size, size, 3))
        behind = Image.fromarray(np.round(255 * ground).astype(np.uint8))
        sign = SIGNS[random.integers(len(SIGNS))](size)
        corners = np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
        seen = corners * random.uniform(0.7, 0.95) + random.uniform(-0.13, 0.13, (4, 2))
        seen += random.uniform(-0.1, 0.1, 2)
        sign = sign.transform(
            sign.size,
            Image.Transform.PERSPECTIVE,
            perspective((seen + 1) * size / 2, (corners + 1) * size / 2),
            Image.Resampling.BILINEAR,
        )
        light = random.uniform(0.5, 1.0)
        colours = sign.convert("RGB").point(lambda level: level * light)
        behind.paste(colours, (0, 0), sign.getchannel("A"))
        return behind.reduce(OVERSAMPLED)


def perspective(seen: np.ndarray, drawn: np.ndarray) -> list[float]:
    """Return Pillow's coefficients of the map from four seen points to four drawn ones."""
    rows, values = [], []
    for (x, y), (u, v) in zip(seen, drawn, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return np.linalg.solve(np.array(rows), np.array(values)).tolist()


def _blank(size: int) -> tuple[Image.Image, ImageDraw.ImageDraw, Callable[..., list[float]]]:
    image = Image.new("RGBA", (size, size))
    return image, ImageDraw.Draw(image), lambda *shares: [share * size for share in shares]


def _no_entry(size: int) -> Image.Image:
    image, pen, at = _blank(size)
    pen.ellipse(at(0.05, 0.05, 0.95, 0.95), fill="#c01818")
    pen.rectangle(at(0.2, 0.42, 0.8, 0.58), fill="white")
    return image


def _warning(size: int) -> Image.Image:
    image, pen, at = _blank(size)
    pen.polygon(at(0.5, 0.05, 0.97, 0.92, 0.03, 0.92), fill="#c01818")
    pen.polygon(at(0.5, 0.25, 0.82, 0.83, 0.18, 0.83), fill="white")
    pen.rectangle(at(0.46, 0.4, 0.54, 0.64), fill="black")
    pen.ellipse(at(0.46, 0.69, 0.54, 0.77), fill="black")
    return image


def _ahead(size: int) -> Image.Image:
    image, pen, at = _blank(size)
    pen.ellipse(at(0.05, 0.05, 0.95, 0.95), fill="#1848b0")
    pen.rectangle(at(0.44, 0.4, 0.56, 0.82), fill="white")
    pen.polygon(at(0.5, 0.16, 0.7, 0.46, 0.3, 0.46), fill="white")
    return image


def _priority(size: int) -> Image.Image:
    image, pen, at = _blank(size)
    pen.polygon(at(0.5, 0.03, 0.97, 0.5, 0.5, 0.97, 0.03, 0.5), fill="white")
    pen.polygon(at(0.5, 0.17, 0.83, 0.5, 0.5, 0.83, 0.17, 0.5), fill="#e8b818")
    return image


SIGNS = (_no_entry, _warning, _ahead, _priority)


def pieces(
    seed: int,
    per_image: int,
    steps: int,
    frozen: int = 400,
    head_rate: float = 3e-4,
    judged: str = "test",
) -> Assembly:
    return Assembly(
        dataset=Tetrominoes(count=4096, pieces="IO", per_image=per_image),
        sprites=Pixels(count=3, size=(24, 24), mask_sigma=5.0, jitter=0.02),
        transforms=Transforms(layer=[Color(), Position()]),
        compositor=Ordered(layers=per_image),
        selector=Greedy(),
        predictor=Network(encoder=Strided()),
        training=Training(prototype_rate=1e-2, encoder_rate=1e-3, head_rate=head_rate),
        stages=[Stage(steps=frozen, freeze_sprites=True), Stage(steps=steps - frozen)],
        evaluation=Evaluation(split=judged),
        metrics=[Mse()],
        seed=seed,
    )


def two_pieces(seed: int) -> Assembly:
    """Stages, the rate of heads and what is judged were chosen by what 0.1.0 does here.

    With its code, 600 frozen steps give the loss that it had after 600, and heads that learn
    at 6e-4 the losses after that: at 3e-4 these are higher; at 1e-3 they fit a little better
    with seed 0, but with seed 1 nothing is learned for 2,500 steps. The loss in the end that
    it had is that on the first 320 training images; on held-out images it is far above.
    """
    return pieces(seed, 2, 4000, frozen=600, head_rate=6e-4, judged="train")


def letter(seed: int) -> Assembly:
    stages = [Stage(steps=400, transforms=["color", "position"]), Stage(steps=1600)]
    return _letter(seed, Letters(), stages)


def fitted_letter(seed: int) -> Assembly:
    """Sprites are frozen for 200 steps: with its code, 0.1.0 has the loss it had after 400."""
    stages = [
        Stage(steps=200, transforms=["color", "position"], freeze_sprites=True),
        Stage(steps=200, transforms=["color", "position"]),
        Stage(steps=1600),
    ]
    return _letter(seed, FittedLetters(), stages)


def _letter(seed: int, dataset: Dataset, stages: list[Stage]) -> Assembly:
    return Assembly(
        dataset=dataset,
        sprites=Pixels(count=1, size=(20, 20), mask_sigma=5.0, jitter=0.02),
        transforms=Transforms(sprite=[Similarity()], layer=[Color(), Position()]),
        compositor=Ordered(layers=1),
        selector=Greedy(),
        predictor=Network(encoder=Strided()),
        training=Training(prototype_rate=1e-2, encoder_rate=1e-3, head_rate=1e-3),
        stages=stages,
        metrics=[Mse()],
        seed=seed,
    )


def signs(seed: int) -> Assembly:
    return Assembly(
        dataset=Signs(),
        sprites=Pixels(count=4, size=(28, 28), mask_sigma=7.0, jitter=0.02),
        backgrounds=Pixels(count=1, start="mean"),
        stages=[
            Stage(steps=400, transforms=["color"]),
            Stage(steps=600, transforms=["color", "projective"]),
            Stage(steps=400),
        ],
        metrics=[Mse()],
        seed=seed,
        **_two_layers(),
    )


def gtsrb8(seed: int) -> Assembly:
    return Assembly(
        dataset=Gtsrb8(),
        sprites=Pixels(count=8, size=(28, 28), mask_sigma=5.0, jitter=0.02),
        backgrounds=Pixels(count=1, start="mean"),
        stages=[
            Stage(steps=300, transforms=["color"]),
            Stage(steps=500, transforms=["color", "projective"]),
            Stage(steps=700),
        ],
        evaluation=Evaluation(split="train", images=10_650),
        metrics=[Mse(), Accuracy()],
        seed=seed,
        **_two_layers(),
    )


def _two_layers() -> dict[str, object]:
    def chain() -> list[object]:
        return [Color(), Projective(), Tps()]

    return {
        "transforms": Transforms(sprite=chain(), background=chain()),
        "compositor": Ordered(layers=1),
        "selector": Exhaustive(),
        "predictor": Network(encoder=Strided()),
        "training": Training(
            batch_size=64,
            prototype_rate=1e-2,
            encoder_rate=1e-3,
            head_rate=1e-3,
            reassign_every=25,
        ),
    }


@attrs.frozen
class World:
    """An assembly by seed; figures by step, of evaluation in the end, and of accuracy."""

    title: str
    make: Callable[[int], Assembly]
    steps: tuple[int, ...]
    authors: tuple[float, ...]
    authors_end: float
    before: tuple[float, ...]
    before_end: float
    accuracy: tuple[float, float] | None = None


WORLDS = {
    "one": World(
        "one tetromino of two kinds",
        lambda seed: pieces(seed, 1, 1400),
        (200, 600, 1000, 1400),
        (15.9, 7.65, 5.7, 5.15),
        3.5,
        (16.7, 8.0, 5.65, 5.2),
        4.0,
    ),
    "two": World(
        "two tetrominoes",
        two_pieces,
        (600, 1500, 2500, 4000),
        (27.3, 19.5, 14.9, 11.3),
        9.0,
        (27.9, 18.3, 14.1, 11.2),
        8.8,
    ),
    "letter": World(
        "a turned letter; similarity joins at 400",
        letter,
        (400, 700, 1000, 2000),
        (16.45, 8.15, 4.6, 2.55),
        2.2,
        (16.6, 14.65, 13.65, 10.2),
        9.75,
    ),
    "fitted_letter": World(
        "a turned letter, fitted to 0.1.0; similarity joins at 400",
        fitted_letter,
        (400, 700, 1000, 2000),
        (16.45, 8.15, 4.6, 2.55),
        2.2,
        (16.6, 14.65, 13.65, 10.2),
        9.75,
    ),
    "signs": World(
        "drawn signs; projective joins at 400, tps at 1000",
        signs,
        (400, 700, 1010, 1400),
        (25.5, 12.1, 8.95, 7.65),
        6.9,
        (25.7, 13.5, 14.4, 8.45),
        7.55,
    ),
    "gtsrb8": World(
        "GTSRB-8; projective joins at 300, tps at 800",
        gtsrb8,
        (300, 600, 1000, 1500),
        (29.3, 18.4, 14.7, 11.6),
        10.7,
        (29.6, 19.3, 15.8, 12.3),
        11.8,
        (54.8, 50.5),
    ),
}
"""Figures of the authors and of 0.1.0 are the means of two seeds; of one for two and gtsrb8."""
