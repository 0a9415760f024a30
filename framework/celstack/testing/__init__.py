"""Conformance checks: whether a part keeps the laws of its interface.

Public; the same checks run on the kit's parts::

    from celstack.testing import check_transform

    def test_it_keeps_the_laws_of_a_transform():
        check_transform(Brighten())

A check takes a part as its constructor left it, tries it on tiny tensors, and raises
AssertionError with the law that is broken. It restores torch's random state. The plain parts
are small implementations of each kind, to test others with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celstack.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from celstack.testing.compositors import check_compositor
    from celstack.testing.datasets import check_dataset
    from celstack.testing.encoders import check_encoder
    from celstack.testing.metrics import check_metric
    from celstack.testing.model import PlainSelector, plain_decomposer, plain_scene
    from celstack.testing.observers import check_observer
    from celstack.testing.parts import (
        PlainCompositor,
        PlainDataset,
        PlainEncoder,
        PlainMetric,
        PlainObserver,
        PlainPredictor,
        PlainPrototype,
        PlainTransform,
        PlainWarp,
    )
    from celstack.testing.plugins import load_plugin
    from celstack.testing.predictors import check_predictor
    from celstack.testing.prototypes import check_prototype
    from celstack.testing.selectors import check_selector
    from celstack.testing.transforms import check_transform

# Imported when first used, because all of them import torch.
_HOME = {
    "PlainCompositor": "parts",
    "PlainDataset": "parts",
    "PlainEncoder": "parts",
    "PlainMetric": "parts",
    "PlainObserver": "parts",
    "PlainPredictor": "parts",
    "PlainPrototype": "parts",
    "PlainSelector": "model",
    "PlainTransform": "parts",
    "PlainWarp": "parts",
    "check_compositor": "compositors",
    "check_dataset": "datasets",
    "check_encoder": "encoders",
    "check_metric": "metrics",
    "check_observer": "observers",
    "check_predictor": "predictors",
    "check_prototype": "prototypes",
    "check_selector": "selectors",
    "check_transform": "transforms",
    "plain_decomposer": "model",
    "plain_scene": "model",
    "load_plugin": "plugins",
}

__all__ = [
    "PlainCompositor",
    "PlainDataset",
    "PlainEncoder",
    "PlainMetric",
    "PlainObserver",
    "PlainPredictor",
    "PlainPrototype",
    "PlainSelector",
    "PlainTransform",
    "PlainWarp",
    "check_compositor",
    "check_dataset",
    "check_encoder",
    "check_metric",
    "check_observer",
    "check_predictor",
    "check_prototype",
    "check_selector",
    "check_transform",
    "load_plugin",
    "plain_decomposer",
    "plain_scene",
]

__getattr__ = lazy_getattr(__name__, _HOME)
