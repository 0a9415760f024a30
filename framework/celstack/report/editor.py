"""The scene editor of a report: the data and code to render and edit scenes in a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
from jaxtyping import Float
from torch import Tensor

from celstack.evaluation.visualize import to_pil_image
from celstack.export.scene_json import param_names, scene_to_json
from celstack.model.decomposer import Decomposer
from celstack.model.transform_chain import TransformChain
from celstack.report.embed import data_uri
from celstack.report.packed_images import pack_images
from celstack.scene import Scene

SCRIPTS = (
    "geometry.js",
    "model.js",
    "render.js",
    "edits.js",
    "session.js",
    "stage.js",
    "panel.js",
    "actions.js",
    "editor.js",
)
"""In the order in which a page has to load them."""


@attrs.frozen
class EditorAssets:
    """The style sheet and the script of the editor, which a page includes once."""

    css: str
    js: str


def editor_assets() -> EditorAssets:
    """Read the editor's style sheet and scripts."""
    here = Path(__file__).parent / "assets"
    scripts = [(here / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return EditorAssets((here / "editor.css").read_text(encoding="utf-8"), "\n".join(scripts))


def editor_data(
    decomposer: Decomposer,
    scene: Scene,
    originals: Float[Tensor, "B C H W"],
    names: list[str],
    sprite_names: list[str],
) -> dict[str, Any] | None:
    """Return the values for ``editor.html``; None if there is no scene to edit.

    Args:
        decomposer: The model.
        scene: The scenes of the examples.
        originals: The images of the examples.
        names: The names of the examples.
        sprite_names: The names of the sprites.

    Returns:
        ``data`` is JSON-compatible, ``code`` are the distinct browser sources of the
        transforms, and ``missing`` the names of transforms without browser code: if there
        are any, the scenes cannot be edited.
    """
    if len(scene) == 0:
        return None
    chains = {
        "sprite": decomposer.sprite_chain,
        "layer": decomposer.layer_chain,
        "background": decomposer.background_chain,
    }
    transforms = [transform for chain in chains.values() for transform in chain]
    missing = sorted({t.name for t in transforms if t.browser() is None})
    if missing:
        return {"data": None, "code": [], "missing": missing}
    code: list[str] = []
    height, width = decomposer.canvas
    backgrounds = decomposer.backgrounds
    data = {
        "height": height,
        "width": width,
        "channels": decomposer.channels,
        "sprites": pack_images(decomposer.sprites.images()),
        "names": sprite_names,
        "backgrounds": pack_images(backgrounds.images()) if backgrounds is not None else None,
        "chains": {kind: _describe_chain(chain, code) for kind, chain in chains.items()},
        "examples": [
            {
                "name": name,
                "original": data_uri(to_pil_image(original.cpu())),
                "scene": json.loads(scene_to_json(scene[number : number + 1], decomposer)),
            }
            for number, (name, original) in enumerate(zip(names, originals, strict=True))
        ],
    }
    return {"data": data, "code": [_escape_script(source) for source in code], "missing": []}


def _describe_chain(chain: TransformChain, code: list[str]) -> list[dict[str, Any]]:
    """Describe the transforms of a chain; append their sources to ``code`` if new."""
    found = []
    for key, transform, active in zip(param_names(chain), chain, chain.active, strict=True):
        browser = transform.browser()
        assert browser is not None  # editor_data has checked it
        if browser.source not in code:
            code.append(browser.source)
        described = {"name": transform.name, "key": key, "count": transform.num_params}
        described |= {"active": active, "code": code.index(browser.source)}
        found.append({**described, "options": dict(browser.options)})
    return found


def _escape_script(source: str) -> str:
    """Escape what would end the script element."""
    return source.replace("</script", "<\\/script").replace("<!--", "<\\!--")
