"""Sample the layout of a CLEVR-like scene: objects, camera and lamps.

Convention: the ground is the plane z = 0, z points up, lengths are CLEVR's. Points of an
image are (x, y) from 0 to 1, y down.
"""

import math
from collections.abc import Iterator
from typing import Literal

import attrs
import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

Point3 = tuple[float, float, float]
ShapeName = Literal["cube", "sphere", "cylinder"]
Material = Literal["rubber", "metal"]
Size = Literal["large", "small"]

SHAPES: tuple[ShapeName, ...] = ("cube", "sphere", "cylinder")
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

MAX_OFFSET = 3.0
"""Largest absolute x and y of an object's center."""
MIN_GAP = 0.25
"""Minimum distance between two objects."""
MIN_BORDER = 0.04
"""Minimum distance of an object's center from the edges of the image."""
MAX_ATTEMPTS = 50
"""Positions sampled for an object before all objects are placed anew."""

CAMERA: Point3 = (7.5, -6.5, 5.35)
TARGET: Point3 = (0.0, 0.0, 0.0)
LAMPS: dict[str, Point3] = {
    "key": (7.5, 2.0, 7.5),
    "fill": (-5.0, -6.5, 5.0),
    "back": (0.0, 6.5, 8.0),
}
CAMERA_JITTER, LAMP_JITTER = 0.5, 1.0
# CLEVR's camera has a 35 mm lens and a 32 mm sensor of 320 x 240 pixels. The usual crop
# keeps 192 x 192 pixels, whose center is five pixels below that of the image.
HALF_WIDTH = 16 / 35 * 192 / 320
"""Tangent of half the field of view."""
CENTER_OFFSET = 5 / 192
"""Distance of the image center below the principal point, as a share of the image."""


@attrs.frozen
class ClevrObject:
    """An object: appearance, position on the ground, and rotation about the vertical axis."""

    shape: ShapeName
    material: Material
    color: str
    size: Size
    x: float
    y: float
    angle: float

    @property
    def radius(self) -> float:
        """Horizontal radius."""
        return RADII[self.size]

    @property
    def half_height(self) -> float:
        """Height of the center; a cube's vertical edges lie on the cylinder of its radius."""
        return self.radius / math.sqrt(2) if self.shape == "cube" else self.radius

    @property
    def center(self) -> Point3:
        """Center of the object."""
        return (self.x, self.y, self.half_height)

    @property
    def class_number(self) -> int:
        """Class id of its pixels: its index in CLASSES, counted from 1."""
        return CLASSES.index(f"{self.material} {self.shape}") + 1


@attrs.frozen
class ClevrScene:
    """Objects, camera position and lamp positions."""

    objects: tuple[ClevrObject, ...]
    camera: Point3
    lamps: dict[str, Point3]

    def project(self, points: ArrayLike) -> Float64[np.ndarray, "n 2"]:
        """Project points (n, 3) to image coordinates."""
        forward = np.subtract(TARGET, self.camera)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, (0, 0, 1))
        right /= np.linalg.norm(right)
        rays = np.subtract(points, self.camera)
        plane = np.stack([rays @ right, rays @ np.cross(forward, right)], axis=1)
        plane /= (rays @ forward)[:, None]
        return plane / (2 * HALF_WIDTH) + (0.5, 0.5 - CENTER_OFFSET)


def sample_layouts(
    random: np.random.Generator, min_objects: int, max_objects: int
) -> Iterator[ClevrScene]:
    """Sample objects, camera and lamps once, and yield scenes with new object positions.

    Objects of a scene do not overlap, and their centers lie in the image, but one may occlude
    another: use the first scene in which each is visible enough. The objects stay the same,
    because sampling them anew would make small objects, and many of them, rare.
    """
    camera = _jittered(random, CAMERA, CAMERA_JITTER)
    lamps = {name: _jittered(random, place, LAMP_JITTER) for name, place in LAMPS.items()}
    wanted = [
        _sample_object(random) for _ in range(random.integers(min_objects, max_objects + 1))
    ]
    while True:
        scene: ClevrScene | None = ClevrScene((), camera, lamps)
        for thing in wanted:
            scene = scene and _place(random, thing, scene)
        if scene is not None:
            yield scene


def _sample_object(random: np.random.Generator) -> ClevrObject:
    return ClevrObject(
        shape=SHAPES[random.integers(len(SHAPES))],
        material=MATERIALS[random.integers(len(MATERIALS))],
        color=list(COLORS)[random.integers(len(COLORS))],
        size=list(RADII)[random.integers(len(RADII))],
        x=0.0,
        y=0.0,
        angle=random.uniform(0, 2 * math.pi),
    )


def _place(
    random: np.random.Generator, thing: ClevrObject, scene: ClevrScene
) -> ClevrScene | None:
    """Add an object at a random free position, or return None if none is found."""
    for x, y in random.uniform(-MAX_OFFSET, MAX_OFFSET, (MAX_ATTEMPTS, 2)).tolist():
        moved = attrs.evolve(thing, x=x, y=y)
        apart = all(
            math.hypot(x - other.x, y - other.y) >= thing.radius + other.radius + MIN_GAP
            for other in scene.objects
        )
        seen = scene.project([moved.center])
        if apart and np.all((seen >= MIN_BORDER) & (seen <= 1 - MIN_BORDER)):
            return attrs.evolve(scene, objects=(*scene.objects, moved))
    return None


def _jittered(random: np.random.Generator, position: Point3, amount: float) -> Point3:
    x, y, z = (np.array(position) + random.uniform(-amount, amount, 3)).tolist()
    return (x, y, z)
