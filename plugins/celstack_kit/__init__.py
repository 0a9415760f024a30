"""First-party plugins of Celstack, found through the entry points that any package may use.

All plugin classes can be imported from here, for an assembly in Python:

    from celstack_kit import Color, Matching, Ordered, Pixels, Position

A class is imported when it is first used: ``import celstack_kit`` does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celstack_kit.compositors.occlusion import Occlusion
    from celstack_kit.compositors.ordered import Ordered
    from celstack_kit.datasets.clevr6 import Clevr6
    from celstack_kit.datasets.coins import Coins
    from celstack_kit.datasets.glyphs import Glyphs
    from celstack_kit.datasets.gtsrb8 import Gtsrb8
    from celstack_kit.datasets.image_folder import ImageFolder
    from celstack_kit.datasets.multi_dsprites import MultiDsprites
    from celstack_kit.datasets.svhn import Svhn
    from celstack_kit.datasets.tetrominoes import Tetrominoes
    from celstack_kit.datasets.weizmann_horse import WeizmannHorse
    from celstack_kit.encoders.resnet18 import Resnet18
    from celstack_kit.encoders.resnet32 import Resnet32
    from celstack_kit.encoders.strided import Strided
    from celstack_kit.metrics.accuracy import Accuracy
    from celstack_kit.metrics.ari import Ari
    from celstack_kit.metrics.ari_fg import AriFg
    from celstack_kit.metrics.cosegmentation import Cosegmentation
    from celstack_kit.metrics.macc import Macc
    from celstack_kit.metrics.miou import Miou
    from celstack_kit.metrics.mse import Mse
    from celstack_kit.metrics.nmi import Nmi
    from celstack_kit.observers.progress import Progress
    from celstack_kit.observers.report import Report
    from celstack_kit.observers.tensorboard import Tensorboard
    from celstack_kit.predictors.network import Network
    from celstack_kit.prototypes.generated import Generated
    from celstack_kit.prototypes.pixels import Pixels
    from celstack_kit.selectors.exhaustive import Exhaustive
    from celstack_kit.selectors.fitting import Fitting
    from celstack_kit.selectors.greedy import Greedy
    from celstack_kit.selectors.matching import Matching
    from celstack_kit.transforms.affine import Affine
    from celstack_kit.transforms.color import Color
    from celstack_kit.transforms.identity import Identity
    from celstack_kit.transforms.light import Light
    from celstack_kit.transforms.morphological import Morphological
    from celstack_kit.transforms.position import Position
    from celstack_kit.transforms.projective import Projective
    from celstack_kit.transforms.similarity import Similarity
    from celstack_kit.transforms.tps import Tps

__all__ = [
    "Accuracy",
    "Affine",
    "Ari",
    "AriFg",
    "Clevr6",
    "Coins",
    "Color",
    "Cosegmentation",
    "Exhaustive",
    "Fitting",
    "Generated",
    "Glyphs",
    "Greedy",
    "Gtsrb8",
    "Identity",
    "ImageFolder",
    "Light",
    "Macc",
    "Matching",
    "Miou",
    "Morphological",
    "Mse",
    "MultiDsprites",
    "Network",
    "Nmi",
    "Occlusion",
    "Ordered",
    "Pixels",
    "Position",
    "Progress",
    "Projective",
    "Report",
    "Resnet18",
    "Resnet32",
    "Similarity",
    "Strided",
    "Svhn",
    "Tensorboard",
    "Tetrominoes",
    "Tps",
    "WeizmannHorse",
]

_MODULES = {
    "Occlusion": "compositors.occlusion",
    "Ordered": "compositors.ordered",
    "Clevr6": "datasets.clevr6",
    "Coins": "datasets.coins",
    "Glyphs": "datasets.glyphs",
    "Gtsrb8": "datasets.gtsrb8",
    "ImageFolder": "datasets.image_folder",
    "MultiDsprites": "datasets.multi_dsprites",
    "Svhn": "datasets.svhn",
    "Tetrominoes": "datasets.tetrominoes",
    "WeizmannHorse": "datasets.weizmann_horse",
    "Resnet18": "encoders.resnet18",
    "Resnet32": "encoders.resnet32",
    "Strided": "encoders.strided",
    "Accuracy": "metrics.accuracy",
    "Ari": "metrics.ari",
    "AriFg": "metrics.ari_fg",
    "Cosegmentation": "metrics.cosegmentation",
    "Macc": "metrics.macc",
    "Miou": "metrics.miou",
    "Mse": "metrics.mse",
    "Nmi": "metrics.nmi",
    "Progress": "observers.progress",
    "Report": "observers.report",
    "Tensorboard": "observers.tensorboard",
    "Network": "predictors.network",
    "Generated": "prototypes.generated",
    "Pixels": "prototypes.pixels",
    "Exhaustive": "selectors.exhaustive",
    "Fitting": "selectors.fitting",
    "Greedy": "selectors.greedy",
    "Matching": "selectors.matching",
    "Affine": "transforms.affine",
    "Color": "transforms.color",
    "Identity": "transforms.identity",
    "Light": "transforms.light",
    "Morphological": "transforms.morphological",
    "Position": "transforms.position",
    "Projective": "transforms.projective",
    "Similarity": "transforms.similarity",
    "Tps": "transforms.tps",
}
"""The module of each plugin class, below this package."""


def __getattr__(name: str) -> Any:
    """Import a plugin class when it is first used (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    plugin = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = plugin
    return plugin


def __dir__() -> list[str]:
    """List the plugin classes, imported or not."""
    return sorted({*globals(), *__all__})
