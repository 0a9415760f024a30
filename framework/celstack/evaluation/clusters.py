"""Clusters: the one sprite that stands for an image."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from celstack.scene import EMPTY, Rendering, Scene


def clusters(scene: Scene, rendering: Rendering) -> Int[Tensor, " B"]:
    """Label each image with its sprite, counted from 1; 0 where all layers are empty.

    Of several layers that are not empty, the one that shows most gives the label.
    """
    area = rendering.visible.sum((2, 3)).masked_fill(scene.sprite == EMPTY, -torch.inf)
    layer = area.argmax(1, keepdim=True)
    return scene.sprite.gather(1, layer).squeeze(1) + 1
