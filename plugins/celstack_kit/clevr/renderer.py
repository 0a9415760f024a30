"""From a CLEVR-like scene to pixels and masks, with the ray tracer mitsuba."""

import math
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, UInt8
from numpy.typing import NDArray
from scipy import ndimage

from celstack_kit.clevr.layout import COLORS, DOWN, HALF_WIDTH, TARGET, Scene, Thing
from celstack_kit.clevr.meshes import rounded_cube, rounded_cylinder

GROUND, SKY = 0.4, 0.13
"""How much light the ground throws back, and how much comes from everywhere."""
LAMPS = {"key": (1.0, 160.0), "fill": (1.0, 44.0), "back": (1.0, 52.0)}
"""The side of each square lamp and its brightness; jittered scenes say where they hang."""
SUN = (-4.0, 2.0, 30.0), 6.0, 6.0
"""Place, side and brightness of a large lamp above all."""
SHARES = {"key": 0.8, "fill": 0.25, "back": 0.35, "sun": 0.25, "sky": 0.4}
"""About how much light each sends to the ground: the better known, the less noise."""
BOUNCES = 4
PASSES = 4
"""An image is rendered so many times, and the extremes of a pixel's values are left out."""
SPECK = 1.2
"""Matte pixels so many times brighter than those around them are specks."""


def render(
    scene: Scene, ids: UInt8[np.ndarray, "S S"], samples: int, seed: int
) -> UInt8[np.ndarray, "S S 3"]:
    """Return the image of a scene with these ``instances``, of about so many rays a pixel.

    The same arguments give the same image, by however many threads.
    """
    mitsuba = _mitsuba()
    path = {"type": "path", "max_depth": BOUNCES, "rr_depth": BOUNCES + 1}
    sampler = {"type": "multijitter", "sample_count": math.ceil(samples / PASSES)}
    built = _build(scene, len(ids), path, sampler)
    passes = [np.array(mitsuba.render(built, seed=seed + n)) for n in range(PASSES)]
    light = np.sort(passes, axis=0)[1:-1].mean(axis=0)
    matte = np.array([True, *(thing.material == "rubber" for thing in scene.things)])
    clean = _without_specks(light, ids, matte[ids]).clip(0, 1)
    return np.round(255 * _srgb(clean)).astype(np.uint8)


def instances(scene: Scene, side: int) -> UInt8[np.ndarray, "S S"]:
    """Say which object is seen in the middle of each pixel, counted from 1; 0 is ground."""
    shapes = {"type": "aov", "aovs": "number:shape_index"}
    middle = {"type": "stratified", "sample_count": 1, "jitter": False}
    built = _build(scene, side, shapes, middle)
    # Counted from 1 among all shapes, in an order that is the renderer's.
    index = np.array(_mitsuba().render(built, seed=0))[..., -1].round().astype(int)
    numbers = {f"thing{n}": n for n in range(1, len(scene.things) + 1)}
    names = ["nothing", *(shape.id() for shape in built.shapes())]
    return np.array([numbers.get(name, 0) for name in names], np.uint8)[index]


def _without_specks(
    light: Float32[np.ndarray, "S S 3"],
    ids: UInt8[np.ndarray, "S S"],
    matte: Bool[np.ndarray, "S S"],
) -> Float32[np.ndarray, "S S 3"]:
    """Replace them by what is around them.

    What a lamp throws onto the ground by way of a shiny object is found by one ray in
    thousands: a few pixels would be far too bright, and all others a little too dark.
    """
    around = ndimage.median_filter(light, size=(3, 3, 1))
    inside = ndimage.minimum_filter(ids, 3) == ndimage.maximum_filter(ids, 3)
    speck = inside & matte & (light > SPECK * around).any(axis=-1)
    return np.where(speck[..., None], around, light)


@cache
def _mitsuba() -> Any:
    """Import the renderer in the variant that needs neither LLVM nor a graphics card."""
    import drjit
    import mitsuba

    # Processes share the work; threads of each would only stand in the others' way.
    drjit.set_thread_count(1)
    mitsuba.set_variant("scalar_rgb")
    # It would say how it rounds numbers of samples up.
    mitsuba.set_log_level(mitsuba.LogLevel.Error)
    return mitsuba


def _build(scene: Scene, side: int, integrator: Any, sampler: Any) -> Any:
    mitsuba = _mitsuba()
    frame = mitsuba.ScalarTransform4f
    parts: dict[str, Any] = {f"thing{n}": _thing(t) for n, t in enumerate(scene.things, 1)}
    ground = {"type": "diffuse", "reflectance": _rgb(GROUND)}
    parts["ground"] = {"type": "rectangle", "to_world": frame().scale(100), "bsdf": ground}
    for name, (width, brightness) in LAMPS.items():
        parts[name] = _lamp(name, scene.lamps[name], width, brightness)
    parts["sun"] = _lamp("sun", *SUN)
    parts["sky"] = {
        "type": "constant",
        "radiance": _rgb(SKY),
        "sampling_weight": SHARES["sky"],
    }
    parts["integrator"] = integrator
    parts["sensor"] = {
        "type": "perspective",
        "fov": math.degrees(2 * math.atan(HALF_WIDTH)),
        "principal_point_offset_y": DOWN,
        "to_world": frame().look_at(origin=scene.eye, target=TARGET, up=(0, 0, 1)),
        "film": {
            "type": "hdrfilm",
            "width": side,
            "height": side,
            "pixel_format": "rgb",
            "component_format": "float32",
            "rfilter": {"type": "box"},
        },
        "sampler": sampler,
    }
    # One by one: parts of one dictionary come in an order that differs from run to run,
    # and with it the lamps that are chosen by the same random numbers.
    made = {k: mitsuba.load_dict(v) if isinstance(v, dict) else v for k, v in parts.items()}
    return mitsuba.load_dict({"type": "scene", **made})


def _thing(thing: Thing) -> Any:
    mitsuba = _mitsuba()
    color = [level / 255 for level in COLORS[thing.color]]
    if thing.material == "metal":
        surface = {"type": "principled", "metallic": 1.0, "roughness": 0.22}
        bsdf = mitsuba.load_dict({**surface, "base_color": _rgb(*color)})
    else:
        bsdf = mitsuba.load_dict({"type": "diffuse", "reflectance": _rgb(*color)})
    if thing.shape == "sphere":
        ball = {"type": "sphere", "center": thing.center, "radius": thing.radius, "bsdf": bsdf}
        return mitsuba.load_dict(ball)
    points, normals, faces = rounded_cube() if thing.shape == "cube" else rounded_cylinder()
    cos, sin = math.cos(thing.turn), math.sin(thing.turn)
    turn = np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])
    properties = mitsuba.Properties()
    properties["bsdf"] = bsdf
    mesh = mitsuba.Mesh("", len(points), len(faces), has_vertex_normals=True, props=properties)
    buffers = mitsuba.traverse(mesh)
    placed = thing.half_height * points @ turn + thing.center
    buffers["vertex_positions"] = placed.astype(np.float32).ravel()
    buffers["vertex_normals"] = (normals @ turn).astype(np.float32).ravel()
    buffers["faces"] = faces.astype(np.uint32).ravel()
    buffers.update()
    return mesh


def _lamp(name: str, place: tuple[float, ...], width: float, brightness: float) -> Any:
    """Hang a square lamp that shines towards the middle of the ground."""
    frame = _mitsuba().ScalarTransform4f
    aimed = frame().look_at(origin=place, target=(0, 0, 0), up=(0, 0, 1))
    light = {"type": "area", "radiance": _rgb(brightness), "sampling_weight": SHARES[name]}
    return {"type": "rectangle", "to_world": aimed @ frame().scale(width / 2), "emitter": light}


def _rgb(*levels: float) -> dict[str, Any]:
    return {"type": "rgb", "value": list(levels) if len(levels) == 3 else [*levels] * 3}


def _srgb(light: Float32[np.ndarray, "*S"]) -> NDArray[np.float32]:
    """Encode light from 0 to 1 as screens expect it."""
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
