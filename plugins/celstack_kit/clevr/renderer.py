"""Render the image and the instance map of a CLEVR-like scene with the ray tracer mitsuba."""

import math
from functools import cache
from typing import Any

import attrs
import numpy as np
from jaxtyping import Float32, UInt8
from numpy.typing import NDArray

from celstack_kit.clevr.layout import (
    CENTER_OFFSET,
    COLORS,
    HALF_WIDTH,
    TARGET,
    ClevrObject,
    ClevrScene,
)
from celstack_kit.clevr.meshes import rounded_cube, rounded_cylinder

LAMPS = {"key": (1.6, 43.0), "fill": (1.6, 15.0), "back": (1.6, 18.0)}
"""Side and radiance of each square lamp; a scene has their positions."""
SUN = (-4.0, 2.0, 30.0), 6.0, 6.0
"""Position, side and radiance of a large lamp above the scene."""
SAMPLING_WEIGHTS = {"key": 0.8, "fill": 0.25, "back": 0.35, "sun": 0.25, "sky": 0.4}
"""Approximate share of light from each source, for importance sampling."""
BOUNCES = 4
DENOISER_MARGIN = 16


@attrs.frozen
class Look:
    """What images look like, apart from their objects.

    ``ground`` is the reflectance of the ground, ``sky`` the radiance of the ambient light,
    and the lamps are ``lamps`` times as bright as usual. Without ``denoise``, the noise of the
    ray tracer stays.
    """

    ground: tuple[float, float, float] = (0.4, 0.4, 0.4)
    sky: float = 0.19
    lamps: float = 1.0
    denoise: bool = True


def render(
    scene: ClevrScene, side: int, samples: int, seed: int, look: Look
) -> UInt8[np.ndarray, "S S 3"]:
    """Render a scene with ``samples`` rays per pixel, and remove their noise.

    The image is a function of the arguments, independent of the number of threads.
    """
    mitsuba = _mitsuba()
    path = {"type": "path", "max_depth": BOUNCES, "rr_depth": BOUNCES + 1}
    # The denoiser keeps edges of surfaces and of their colors apart from noise.
    guided = {"type": "aov", "aovs": "albedo:albedo,normal:sh_normal", "light": path}
    sampler = {"type": "multijitter", "sample_count": samples}
    built = _build(scene, side, guided if look.denoise else path, sampler, look)
    channels = np.split(np.array(mitsuba.render(built, seed=seed)), 3 if look.denoise else 1, 2)
    light, *guides = (np.ascontiguousarray(image) for image in channels)
    if look.denoise:
        light = _denoise(light, *guides)
    return np.round(255 * _srgb(np.clip(light, 0, 1))).astype(np.uint8)


def _denoise(
    light: Float32[np.ndarray, "S S 3"],
    albedo: Float32[np.ndarray, "S S 3"],
    normal: Float32[np.ndarray, "S S 3"],
) -> Float32[np.ndarray, "S S 3"]:
    """Remove noise; images are mirrored at their borders, where colors would be wrong."""
    import mitsuba_oidn

    margin = ((DENOISER_MARGIN, DENOISER_MARGIN),) * 2 + ((0, 0),)
    padded = [
        np.ascontiguousarray(np.pad(image, margin, mode="symmetric"))
        for image in (light, albedo.clip(0, 1), normal)
    ]
    clean = np.array(mitsuba_oidn.denoise(*padded, hdr=True))
    return clean[DENOISER_MARGIN:-DENOISER_MARGIN, DENOISER_MARGIN:-DENOISER_MARGIN]


def instance_map(scene: ClevrScene, side: int) -> UInt8[np.ndarray, "S S"]:
    """Return the id of the object at the center of each pixel, from 1; 0 is the ground."""
    shapes = {"type": "aov", "aovs": "number:shape_index"}
    middle = {"type": "stratified", "sample_count": 1, "jitter": False}
    built = _build(scene, side, shapes, middle, Look())
    # The renderer numbers all shapes from 1, in an order of its own.
    index = np.array(_mitsuba().render(built, seed=0))[..., -1].round().astype(int)
    numbers = {f"thing{n}": n for n in range(1, len(scene.objects) + 1)}
    names = ["nothing", *(shape.id() for shape in built.shapes())]
    return np.array([numbers.get(name, 0) for name in names], np.uint8)[index]


@cache
def _mitsuba() -> Any:
    """Import mitsuba in the variant that needs neither LLVM nor a GPU."""
    import drjit
    import mitsuba

    # Work is divided among processes; more threads would only compete with them.
    drjit.set_thread_count(1)
    mitsuba.set_variant("scalar_rgb")
    # Otherwise it warns that it rounds the number of samples up.
    mitsuba.set_log_level(mitsuba.LogLevel.Error)
    return mitsuba


def _build(scene: ClevrScene, side: int, integrator: Any, sampler: Any, look: Look) -> Any:
    mitsuba = _mitsuba()
    frame = mitsuba.ScalarTransform4f
    parts: dict[str, Any] = {f"thing{n}": _object(t) for n, t in enumerate(scene.objects, 1)}
    ground = {"type": "diffuse", "reflectance": _rgb(*look.ground)}
    parts["ground"] = {"type": "rectangle", "to_world": frame().scale(100), "bsdf": ground}
    for name, (width, brightness) in LAMPS.items():
        parts[name] = _lamp(name, scene.lamps[name], width, look.lamps * brightness)
    parts["sun"] = _lamp("sun", SUN[0], SUN[1], look.lamps * SUN[2])
    parts["sky"] = {
        "type": "constant",
        "radiance": _rgb(look.sky),
        "sampling_weight": SAMPLING_WEIGHTS["sky"],
    }
    parts["integrator"] = integrator
    parts["sensor"] = {
        "type": "perspective",
        "fov": math.degrees(2 * math.atan(HALF_WIDTH)),
        "principal_point_offset_y": CENTER_OFFSET,
        "to_world": frame().look_at(origin=scene.camera, target=TARGET, up=(0, 0, 1)),
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
    # Loaded one by one: the order of parts in one dictionary differs from run to run, and
    # with it the lamps that the same random numbers select.
    made = {k: mitsuba.load_dict(v) if isinstance(v, dict) else v for k, v in parts.items()}
    return mitsuba.load_dict({"type": "scene", **made})


def _object(thing: ClevrObject) -> Any:
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
    cos, sin = math.cos(thing.angle), math.sin(thing.angle)
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


def _lamp(name: str, position: tuple[float, ...], width: float, brightness: float) -> Any:
    """Return a square area light that points at the origin."""
    frame = _mitsuba().ScalarTransform4f
    aimed = frame().look_at(origin=position, target=(0, 0, 0), up=(0, 0, 1))
    light = {
        "type": "area",
        "radiance": _rgb(brightness),
        "sampling_weight": SAMPLING_WEIGHTS[name],
    }
    return {"type": "rectangle", "to_world": aimed @ frame().scale(width / 2), "emitter": light}


def _rgb(*levels: float) -> dict[str, Any]:
    return {"type": "rgb", "value": list(levels) if len(levels) == 3 else [*levels] * 3}


def _srgb(light: Float32[np.ndarray, "*S"]) -> NDArray[np.float32]:
    """Apply the sRGB transfer function to linear values in [0, 1]."""
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
