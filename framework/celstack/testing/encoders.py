"""check_encoder: the laws of Encoder."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch

from celstack.interfaces.encoder import Encoder
from celstack.testing.assertions import (
    check_gradients_reach,
    check_same_start,
    check_unprepared,
    close,
    require_law,
    seeded,
    varied_images,
)

SHAPES = ((3, 32, 32), (1, 24, 40))


@seeded()
def check_encoder(
    encoder: Encoder, *, image_shapes: Sequence[tuple[int, int, int]] = SHAPES
) -> None:
    """Check the laws of Encoder, for images of these shapes (C, H, W)."""
    check_unprepared(encoder)
    for shape in image_shapes:
        prepared = _prepare(encoder, shape)
        check_same_start(prepared, _prepare(encoder, shape))
        number = prepared.num_features
        known = isinstance(number, int) and number >= 1
        require_law(
            encoder, known, "after prepare, num_features is the length of the feature vectors"
        )
        images = varied_images(4, shape)
        features = prepared.train()(images)
        law = f"features have the shape (images, num_features) = {(4, number)}"
        same = features.shape == (4, number)
        require_law(encoder, same, f"{law}, but it is {tuple(features.shape)}")
        require_law(encoder, bool(features.isfinite().all()), "features are finite")
        check_gradients_reach(prepared, features, list(prepared.parameters()))
        _check_independence(prepared.eval(), images)


def _prepare(encoder: Encoder, shape: tuple[int, int, int]) -> Encoder:
    torch.manual_seed(1)
    prepared = copy.deepcopy(encoder)
    prepared.prepare(shape)
    return prepared


@torch.no_grad()
def _check_independence(encoder: Encoder, images: torch.Tensor) -> None:
    features = encoder(images)
    again = close(encoder(images), features)
    require_law(encoder, again, "in eval mode the same images have the same features")
    alone = torch.cat([encoder(image[None]) for image in images])
    law = "in eval mode an image's features depend on no other image, but they do"
    require_law(encoder, close(alone, features, 1e-4), law)
