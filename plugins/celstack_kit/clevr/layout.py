"""Which objects stand where in a CLEVR-like scene, and from where it is seen and lit.

Convention: the ground is the plane z = 0, z points up, lengths are CLEVR's. Points of an
image are (across, down), both from 0 to 1.
"""

import math
from collections.abc import Iterator
from typing import Literal

import attrs
import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

Point = tuple[float, float, float]
Shape = Literal["cube", "sphere", "cylinder"]
Material = Literal["rubber", "metal"]
Size = Literal["large", "small"]

SHAPES: tuple[Shape, ...] = ("cube", "sphere", "cylinder")
MATERIALS: tuple[Material, ...] = ("rubber", "metal")
CLASSES = tuple(f"{material} {shape}" for material in MATERIALS for shape in SHAPES)
RADII: dict[Size, float] = {"large": 0.7, "small": 0.35}
COLORS = {
    "gray": (87, 87, 87),
    "red": (173, 35, 35),
    "blue": (42, 75, 215),
    "green": (29, 105, 20),
    "brown": (129, 74, 25),
    "purple": (129, 38, 192),
    "cyan": (41, 208, 208),
    "yellow": (255, 238, 51),
}

REACH = 3.0
"""Centers are at most so far from the middle, along both axes of the ground."""
GAP = 0.25
"""The least distance between two objects."""
BORDER = 0.04
"""The least distance of a center from the edges of the image."""
TRIES = 50
"""How many places an object tries before all objects look for new ones."""

EYE: Point = (7.5, -6.5, 5.35)
TARGET: Point = (0.0, 0.0, 0.0)
LAMPS: dict[str, Point] = {
    "key": (7.5, 2.0, 7.5),
    "fill": (-5.0, -6.5, 5.0),
    "back": (0.0, 6.5, 8.0),
}
EYE_JITTER, LAMP_JITTER = 0.5, 1.0
# CLEVR's camera has a lens of 35 mm before a film of 32 mm: 320 pixels wide, 240 high. Of
# these the crop keeps 192 x 192, whose middle is five pixels below that of the image.
HALF_WIDTH = 16 / 35 * 192 / 320
"""The tangent of half the angle of view."""
DOWN = 5 / 192
"""How far the middle of the image lies below the point that the camera looks at."""


@attrs.frozen
class Thing:
    """One object: what it is, where on the ground it stands, and how it is turned."""

    shape: Shape
    material: Material
    color: str
    size: Size
    x: float
    y: float
    turn: float

    @property
    def radius(self) -> float:
        """How far it reaches along the ground."""
        return RADII[self.size]

    @property
    def half_height(self) -> float:
        """How high its center is; a cube's edges reach as far out as other shapes' sides."""
        return self.radius / math.sqrt(2) if self.shape == "cube" else self.radius

    @property
    def center(self) -> Point:
        """The point in its middle."""
        return (self.x, self.y, self.half_height)

    @property
    def class_number(self) -> int:
        """Its class as pixels are labeled: counted from 1, in the order of CLASSES."""
        return CLASSES.index(f"{self.material} {self.shape}") + 1


@attrs.frozen
class Scene:
    """What there is to see, from where, in what light."""

    things: tuple[Thing, ...]
    eye: Point
    lamps: dict[str, Point]

    def project(self, points: ArrayLike) -> Float64[np.ndarray, "n 2"]:
        """Say where in the image points (n, 3) are seen."""
        forward = np.subtract(TARGET, self.eye)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, (0, 0, 1))
        right /= np.linalg.norm(right)
        rays = np.subtract(points, self.eye)
        plane = np.stack([rays @ right, rays @ np.cross(forward, right)], axis=1)
        plane /= (rays @ forward)[:, None]
        return plane / (2 * HALF_WIDTH) + (0.5, 0.5 - DOWN)


def arrangements(random: np.random.Generator, least: int, most: int) -> Iterator[Scene]:
    """Draw objects, view and light once, and places for the objects again and again.

    In none of these scenes do objects overlap, and all their centers are in the image. But
    one may hide another: take the first in which enough of each is seen. Were the objects
    drawn again as well, the small and the many would become rare.
    """
    eye = _jittered(random, EYE, EYE_JITTER)
    lamps = {name: _jittered(random, place, LAMP_JITTER) for name, place in LAMPS.items()}
    wanted = [_thing(random) for _ in range(random.integers(least, most + 1))]
    while True:
        scene: Scene | None = Scene((), eye, lamps)
        for thing in wanted:
            scene = scene and _place(random, thing, scene)
        if scene is not None:
            yield scene


def _thing(random: np.random.Generator) -> Thing:
    return Thing(
        shape=SHAPES[random.integers(len(SHAPES))],
        material=MATERIALS[random.integers(len(MATERIALS))],
        color=list(COLORS)[random.integers(len(COLORS))],
        size=list(RADII)[random.integers(len(RADII))],
        x=0.0,
        y=0.0,
        turn=random.uniform(0, 2 * math.pi),
    )


def _place(random: np.random.Generator, thing: Thing, scene: Scene) -> Scene | None:
    """Put one more object into a scene, if it finds a place."""
    for x, y in random.uniform(-REACH, REACH, (TRIES, 2)).tolist():
        moved = attrs.evolve(thing, x=x, y=y)
        apart = all(
            math.hypot(x - other.x, y - other.y) >= thing.radius + other.radius + GAP
            for other in scene.things
        )
        seen = scene.project([moved.center])
        if apart and np.all((seen >= BORDER) & (seen <= 1 - BORDER)):
            return attrs.evolve(scene, things=(*scene.things, moved))
    return None


def _jittered(random: np.random.Generator, place: Point, most: float) -> Point:
    x, y, z = (np.array(place) + random.uniform(-most, most, 3)).tolist()
    return (x, y, z)
