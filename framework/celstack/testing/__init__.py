"""Checks that a part keeps the laws of its interface: for our parts and for yours.

    from celstack.testing import check_transform

    def test_it_keeps_the_promises_of_a_transform():
        check_transform(Brighten())

A check takes a part as its constructor left it, tries it on tiny tensors, and raises
AssertionError with the law that is broken. It leaves the random state as it was.
``celstack.testing.parts`` and ``.model`` have plain parts to try others with.
"""

from celstack.testing.compositors import check_compositor
from celstack.testing.datasets import check_dataset
from celstack.testing.encoders import check_encoder
from celstack.testing.metrics import check_metric
from celstack.testing.observers import check_observer
from celstack.testing.plugins import load_plugin
from celstack.testing.predictors import check_predictor
from celstack.testing.prototypes import check_prototype
from celstack.testing.selectors import check_selector
from celstack.testing.transforms import check_transform

__all__ = [
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
]
