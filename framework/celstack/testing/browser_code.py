"""Whether the browser code of a transform computes the same as the transform."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import celstack.report
from celstack.interfaces.browser_code import BrowserCode
from celstack.interfaces.transform import Transform, Warp
from celstack.testing.assertions import close, require_law
from celstack.testing.javascript import find_javascript, run_javascript

TOLERANCE = 1e-4
"""JavaScript computes in 64 bits, and stores images in 32."""
SCRIPT = """
  const part = (0, eval)("(" + input.source + "\\n)")(input.options, window.celstack);
  const numbers = (values) => Array.from(values, Number);
  const has = (name) => typeof part[name] === "function";
  const each = (name, call) => has(name) ? input.cases.map(call) : null;
  return {
    pixels: each("pixels", ({ image, params }) => {
      const given = { ...image, data: Float32Array.from(image.data) };
      const { depth, height, width, data } = part.pixels(given, [...params]);
      const kept = given.data.every((value, at) => value === Math.fround(image.data[at]));
      return { shape: [depth, height, width], data: numbers(data), kept };
    }),
    pull: each("pull", ({ points, params }) => {
      const moved = Float64Array.from(points);
      part.pull(moved, [...params]);
      return numbers(moved);
    }),
    follow: each("follow", ({ params }) =>
      numbers(part.follow([...params], [1, 0, 0, 0, 1, 0]))),
    matrix: each("matrix", ({ params }) => numbers(part.matrix([...params]))),
    recolour: each("recolour", ({ from, to }) => numbers(part.recolour([...from], [...to]))),
  };
"""


def check_browser_code(
    transform: Transform, images: Tensor, params: Tensor, points: Tensor
) -> None:
    """Check that ``browser`` is valid, and computes what the transform does.

    It is run where node or a browser is installed, and otherwise not.

    Args:
        transform: The transform, prepared.
        images: Images to change, of shape (n, D, h, w).
        params: Their parameters, of shape (n, P).
        points: Points of the canvas for each image, of shape (n, m, 2).
    """
    code = transform.browser()
    if code is None:
        return
    require_law(transform, bool(code.source.strip()), "browser has a source, but it is empty")
    try:
        json.dumps(dict(code.options), allow_nan=False)
    except (TypeError, ValueError) as error:
        told = f"the options of browser are serializable as JSON, but: {error}"
        raise AssertionError(f"{type(transform).__name__}: {told}") from error
    program = find_javascript()
    if program is None:
        return
    colors = torch.rand(2, len(images), images.shape[1] - 1) * 0.6 + 0.2
    found = _run(program, transform, code, _cases(images, params, points, colors))
    with torch.no_grad():
        _compare(transform, found, images, params, points)
        if found["recolour"] is not None:
            _compare_colors(transform, _tensor(found["recolour"]), colors)


def _cases(images: Tensor, params: Tensor, points: Tensor, colors: Tensor) -> list[Any]:
    depth, height, width = images.shape[1:]
    size = {"depth": depth, "height": height, "width": width}
    return [
        {
            "image": {**size, "data": image.flatten().tolist()},
            "params": own.tolist(),
            "points": some.flatten().tolist(),
            "from": before.tolist(),
            "to": after.tolist(),
        }
        for image, own, some, before, after in zip(images, params, points, *colors, strict=True)
    ]


def _run(program: str, transform: Transform, code: BrowserCode, cases: list[Any]) -> Any:
    helpers = Path(celstack.report.__file__).parent / "assets" / "geometry.js"
    data = {"source": code.source, "options": dict(code.options), "cases": cases}
    script = helpers.read_text(encoding="utf-8") + SCRIPT
    try:
        return run_javascript(program, script, data)
    except RuntimeError as error:
        law = f"the code of browser runs, but: {error}"
        raise AssertionError(f"{type(transform).__name__}: {law}") from error


def _compare(
    transform: Transform, found: Any, images: Tensor, params: Tensor, points: Tensor
) -> None:
    law = "the code of browser {}, but it does not"
    if not isinstance(transform, Warp):
        pixels = found["pixels"]
        require_law(transform, pixels is not None, law.format("has pixels(image, params)"))
        shapes = {tuple(one["shape"]) for one in pixels}
        require_law(transform, shapes == {images.shape[1:]}, law.format("keeps shapes"))
        kept = all(one["kept"] for one in pixels)
        require_law(transform, kept, law.format("leaves the image that it is given as it is"))
        changed = _tensor([one["data"] for one in pixels]).view_as(images)
        same = close(changed, transform(images, params), TOLERANCE)
        require_law(transform, same, law.format("changes pixels as forward does"))
        return
    require_law(transform, found["pull"] is not None, law.format("has pull(points, params)"))
    pulled = transform.pull(points, params)
    same = close(_tensor(found["pull"]).view_as(points), pulled, TOLERANCE)
    require_law(transform, same, law.format("maps points as pull does"))
    if found["follow"] is not None:
        again = transform.pull(points, _tensor(found["follow"]).view_as(params))
        law = (
            "follow of browser keeps parameters if the matrix is the identity, but it does not"
        )
        require_law(transform, close(again, pulled, TOLERANCE), law)
    matrix = transform.matrix(params)
    if found["matrix"] is not None and matrix is not None:
        same = close(_tensor(found["matrix"]).view(-1, 2, 3), matrix[:, :2], TOLERANCE)
        require_law(transform, same, "matrix of browser is that of the warp, but it is not")


def _compare_colors(transform: Transform, params: Tensor, colors: Tensor) -> None:
    before, after = colors
    opaque = torch.cat([before, torch.ones_like(before[:, :1])], dim=1)[:, :, None, None]
    same = close(transform(opaque, params)[:, :-1, 0, 0], after, TOLERANCE)
    law = "recolour of browser returns parameters that turn one color into the other"
    require_law(transform, same, f"{law}, but they do not")


def _tensor(values: list[Any]) -> Tensor:
    """Convert numbers; None stands for NaN, which JSON does not have."""
    rows = [[math.nan if value is None else value for value in row] for row in values]
    return torch.tensor(rows)
