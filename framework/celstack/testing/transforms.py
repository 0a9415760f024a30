"""check_transform: the laws of Transform and Warp."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import gradcheck

from celstack.geometry.homography import clamp_depth, to_3x3
from celstack.geometry.sampling import pixel_centers
from celstack.interfaces.transform import Transform, Warp
from celstack.testing.assertions import (
    check_gradients_reach,
    check_unprepared,
    close,
    require_law,
    seeded,
)
from celstack.testing.browser_code import check_browser_code

CANVASES = ((6, 6), (5, 8), (8, 5))
SPRITE = (4, 3)
"""Sprites may be smaller than the canvas."""
IMAGES = 3


@seeded()
def check_transform(transform: Transform, *, channels: Sequence[int] = (1, 3)) -> None:
    """Check the laws of Transform, and those of Warp if it is one.

    Gradients are compared with finite differences in float64, so a transform must compute in
    the dtype of its input; constants belong in buffers, or are created like the input. The
    JavaScript of ``browser`` is compared with Python where node or a browser is installed.

    Args:
        transform: A transform that is not prepared.
        channels: Numbers of color channels to check it with.
    """
    check_unprepared(transform)
    for number in channels:
        for canvas in CANVASES:
            prepared = _prepare(transform, number, canvas)
            for size in (canvas, SPRITE):
                images = _images(IMAGES, number, size)
                _check_shapes(prepared, images)
                _check_rest(prepared, images)
                _check_rows(prepared, images)
                _check_tint(prepared, images)
            if isinstance(prepared, Warp):
                _check_points(prepared, canvas)
                _check_place(prepared)
        _check_browser(prepared, images)
        _check_gradients(prepared.double(), number)


def _prepare(transform: Transform, channels: int, canvas: tuple[int, int]) -> Transform:
    prepared = copy.deepcopy(transform)
    prepared.prepare(channels, canvas=canvas)
    count = getattr(prepared, "num_params", None)
    law = "num_params, set by the class or in prepare, is the number of parameters"
    found = "is missing" if count is None else f"is {count!r}"
    valid = type(count) is int and count >= 0
    require_law(transform, valid, f"{law}, but it {found}")
    return prepared


def _images(count: int, channels: int, canvas: tuple[int, int]) -> Float[Tensor, "n D h w"]:
    # Away from 0 and 1, where clipping is not differentiable.
    return 0.2 + 0.6 * torch.rand(count, channels + 1, *canvas)


def _params(transform: Transform, count: int) -> Float[Tensor, "n P"]:
    return 0.2 * torch.randn(count, transform.num_params)


def _check_shapes(transform: Transform, images: Float[Tensor, "n D h w"]) -> None:
    params = _params(transform, len(images))
    given = images.clone(), params.clone()
    output = transform(images, params)
    canvas = tuple(images.shape[-2:])
    law = f"shapes stay as they are, but {tuple(images.shape)} became {tuple(output.shape)}"
    require_law(transform, output.shape == images.shape, law)
    law = f"it computes in the dtype of its input, but float32 became {output.dtype}"
    require_law(transform, output.dtype == images.dtype, law)
    finite = bool(output.isfinite().all())
    require_law(transform, finite, f"results are finite, but not on a canvas of {canvas}")
    untouched = torch.equal(images, given[0]) and torch.equal(params, given[1])
    require_law(transform, untouched, "inputs are not modified, but they were")


def _check_rest(transform: Transform, images: Float[Tensor, "n D h w"]) -> None:
    zeros = torch.zeros(len(images), transform.num_params)
    alike = images[:1].expand_as(images).contiguous()
    output = transform(alike, zeros)
    same = close(output, output[:1].expand_as(output), 1e-6)
    require_law(
        transform, same, "all-zero parameters are one rest pose, the same for every image"
    )
    if not transform.rest_is_identity:
        return
    law = "all-zero parameters leave every {} where it is (or rest_is_identity is False)"
    if isinstance(transform, Warp):
        height, width = images.shape[-2:]
        points = pixel_centers(height, width, images).expand(len(images), -1, -1)
        require_law(
            transform, close(transform.pull(points, zeros), points), law.format("point")
        )
    else:
        require_law(transform, close(transform(images, zeros), images), law.format("pixel"))


def _check_rows(transform: Transform, images: Float[Tensor, "n D h w"]) -> None:
    params = _params(transform, len(images))
    output = transform(images, params)
    others = [0, 2]
    law = "each image depends on its own row of parameters alone, but also on another's {}"
    changed = params.clone()
    changed[1] += 0.3
    kept = close(transform(images, changed)[others], output[others], 1e-6)
    require_law(transform, kept, law.format("row"))
    repainted = images.clone()
    repainted[1] *= 0.3
    kept = close(transform(repainted, params)[others], output[others], 1e-6)
    require_law(transform, kept, law.format("image"))
    alone = transform(images[:1], params[:1])
    require_law(transform, close(alone, output[:1]), law.format("presence"))


def _check_points(warp: Warp, canvas: tuple[int, int]) -> None:
    like = torch.zeros(())
    points = pixel_centers(*canvas, like=like).expand(IMAGES, -1, -1)
    params = _params(warp, IMAGES)
    pulled = warp.pull(points, params)
    some = torch.randperm(points.shape[1])[:5]
    kept = close(warp.pull(points[:, some], params), pulled[:, some])
    law = "points are mapped independently, but the result depends on which others are given"
    require_law(warp, kept, law)
    matrix = warp.matrix(params)
    if matrix is not None:
        ones = torch.ones_like(points[..., :1])
        found = torch.cat([points, ones], dim=2) @ to_3x3(matrix).mT
        same = close(found[..., :2] / clamp_depth(found[..., 2:]), pulled)
        require_law(warp, same, "matrix is the same map as pull, but it maps points elsewhere")


def _check_tint(transform: Transform, images: Float[Tensor, "n D h w"]) -> None:
    gains = 0.2 + 0.8 * torch.rand(len(images), images.shape[1] - 1)
    shifts = (1 - gains) * torch.rand_like(gains)
    for offsets in (None, shifts):
        params = transform.tint(gains, offsets)
        if params is None:
            continue
        tinted = images.clone()
        tinted[:, :-1] *= gains[:, :, None, None]
        law = "what tint returns multiplies colors by the gains and does not change alpha"
        if offsets is not None:
            tinted[:, :-1] += offsets[:, :, None, None]
            law = "what tint returns then adds the offsets to colors"
        require_law(transform, close(transform(images, params), tinted), law)


def _check_browser(transform: Transform, images: Float[Tensor, "n D h w"]) -> None:
    params = _params(transform, len(images))
    params[0] = 0.0
    points = pixel_centers(*CANVASES[-1], like=images).expand(len(images), -1, -1)
    check_browser_code(transform, images, params, points)


def _check_place(warp: Warp) -> None:
    turned = torch.tensor([[1.5, 0.3, 0.1], [-0.2, 1.4, -0.3]]).expand(IMAGES, -1, -1)
    if warp.params_from_matrix(turned) is None:
        return
    rest = warp.matrix(torch.zeros(IMAGES, warp.num_params))
    require_law(
        warp, rest is not None, "a warp that implements params_from_matrix has a matrix"
    )
    assert rest is not None  # as demanded
    near = _placed(warp, turned)
    for known, law in ((rest[:, :2], "of its rest pose"), (near, "that it has returned")):
        again = _placed(warp, known)
        require_law(
            warp, close(again, known), f"params_from_matrix reproduces the matrix {law}"
        )
    center = -torch.linalg.solve(turned[:, :, :2], turned[:, :, 2:])
    kept = close(near[:, :, :2] @ center, -near[:, :, 2:])
    law = "params_from_matrix keeps the point that is mapped to the sprite's center"
    require_law(warp, kept, law)


def _placed(warp: Warp, matrix: Float[Tensor, "n 2 3"]) -> Float[Tensor, "n 2 3"]:
    """Return the matrix of the parameters that a warp finds for a matrix."""
    params = warp.params_from_matrix(matrix)
    assert params is not None  # as checked before
    placed = warp.matrix(params)
    assert placed is not None  # as at rest
    return placed[:, :2]


def _check_gradients(transform: Transform, channels: int) -> None:
    images = _images(2, channels, (4, 5)).double().requires_grad_()
    params = _params(transform, 2).double().requires_grad_()
    output = transform(images, params)
    reached = output.requires_grad
    require_law(transform, reached, "gradients reach images and parameters, but there are none")
    weights = torch.randn_like(output)
    to_images, to_params = torch.autograd.grad(
        (output * weights).sum(), (images, params), allow_unused=True
    )
    own = [parameter for parameter in transform.parameters() if parameter.requires_grad]
    if own:
        check_gradients_reach(transform, transform(images, params), own)
    reached = to_images is not None and bool(to_images.any())
    require_law(transform, reached, "gradients reach images, but none arrives")
    if transform.num_params:
        columns = [] if to_params is None else to_params.any(0).tolist()
        dead = [n for n in range(transform.num_params) if not columns or not columns[n]]
        require_law(
            transform, not dead, f"gradients reach parameters, but none arrives at {dead}"
        )
    law = "gradients are right, but they differ from finite differences"
    require_law(transform, _gradients_are_true(transform, images, params), law)


def _gradients_are_true(transform: Transform, images: Tensor, params: Tensor) -> bool:
    function, given = transform.__call__, images
    if isinstance(transform, Warp):
        # Coordinates, not pixels: bilinear sampling is not differentiable at pixel centers.
        function = transform.pull
        given = pixel_centers(2, 3, like=images).expand(2, -1, -1).clone().requires_grad_()
    if transform.num_params:
        return gradcheck(function, (given, params), raise_exception=False)
    return gradcheck(lambda only: function(only, params), (given,), raise_exception=False)
