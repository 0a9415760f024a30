"""The model: from images to scenes, and from scenes to images.

Public; uses geometry and the interfaces. ``Decomposer`` puts the parts together. The rest is
what fast selectors are made of: candidates, a stack of layers in which one layer at a time
is replaced, chains of transforms; and, in ``celstack.model.numba_jit``, compiled loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celstack.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from celstack.model.candidate_selector import CandidateSelector
    from celstack.model.candidates import Candidates, render_candidates
    from celstack.model.compositing import composite
    from celstack.model.decomposer import Decomposer
    from celstack.model.layer_stack import LayerStack
    from celstack.model.objective import Loss, squared_error
    from celstack.model.sprite_warp import SpriteWarp, warp_sprites
    from celstack.model.transform_chain import TransformChain

# Imported when first used, because all of them import torch.
_HOME = {
    "CandidateSelector": "candidate_selector",
    "Candidates": "candidates",
    "Decomposer": "decomposer",
    "LayerStack": "layer_stack",
    "Loss": "objective",
    "SpriteWarp": "sprite_warp",
    "TransformChain": "transform_chain",
    "composite": "compositing",
    "render_candidates": "candidates",
    "squared_error": "objective",
    "warp_sprites": "sprite_warp",
}

__all__ = [
    "CandidateSelector",
    "Candidates",
    "Decomposer",
    "LayerStack",
    "Loss",
    "SpriteWarp",
    "TransformChain",
    "composite",
    "render_candidates",
    "squared_error",
    "warp_sprites",
]

__getattr__ = lazy_getattr(__name__, _HOME)
