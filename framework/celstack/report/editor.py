"""The scene editor of a report: what a page needs to render and edit scenes by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
from jaxtyping import Float
from torch import Tensor

from celstack.evaluation.visualize import to_picture
from celstack.export.scene_json import param_names, scene_to_json
from celstack.model.decomposer import Decomposer
from celstack.model.transform_chain import TransformChain
from celstack.report.embed import data_uri
from celstack.report.packed_images import pack
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
"""In the order in which a page has to run them."""


@attrs.frozen
class EditorAssets:
    """What a page with an editor has to hold, once: a style sheet and a script."""

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
    """Collect what ``editor.html`` shows; None where there is no scene to edit.

    ``names`` are those of the examples. ``data`` is what JSON can hold, ``code`` the sources
    of the transforms, each once, and ``missing`` the names of transforms that have none: with
    these, nothing can be edited.
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
        "sprites": pack(decomposer.sprites.images()),
        "names": sprite_names,
        "backgrounds": pack(backgrounds.images()) if backgrounds is not None else None,
        "chains": {kind: _outline(chain, code) for kind, chain in chains.items()},
        "examples": [
            {
                "name": name,
                "original": data_uri(to_picture(original.cpu())),
                "scene": json.loads(scene_to_json(scene[number : number + 1], decomposer)),
            }
            for number, (name, original) in enumerate(zip(names, originals, strict=True))
        ],
    }
    return {"data": data, "code": [_for_a_page(source) for source in code], "missing": []}


def _outline(chain: TransformChain, code: list[str]) -> list[dict[str, Any]]:
    """Say what a chain is made of; add sources that are new to the code."""
    found = []
    for key, transform, active in zip(param_names(chain), chain, chain.active, strict=True):
        browser = transform.browser()
        assert browser is not None  # editor_data has asked
        if browser.source not in code:
            code.append(browser.source)
        about = {"name": transform.name, "key": key, "count": transform.num_params}
        about |= {"active": active, "code": code.index(browser.source)}
        found.append({**about, "options": dict(browser.options)})
    return found


def _for_a_page(source: str) -> str:
    """Keep what a script says from ending the element that it stands in."""
    return source.replace("</script", "<\\/script").replace("<!--", "<\\!--")
