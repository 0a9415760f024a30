"""Celstack: learn the sprites that images are made of, and see images as stacks of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from celstack.errors import CelstackError

if TYPE_CHECKING:
    from celstack.assembly import Assembly, Evaluation, Stage, Training, Transforms
    from celstack.browsercode import BrowserCode
    from celstack.candidates import Candidates
    from celstack.decompose import read_images
    from celstack.evaluate import score
    from celstack.hookspecs import hookimpl
    from celstack.interfaces.candidate_selector import CandidateSelector
    from celstack.interfaces.compositor import Compositor
    from celstack.interfaces.dataset import Batch, Dataset, Source
    from celstack.interfaces.encoder import Encoder
    from celstack.interfaces.metric import Metric
    from celstack.interfaces.observer import Observer
    from celstack.interfaces.predictor import (
        ActiveTransforms,
        Outline,
        Prediction,
        Predictor,
    )
    from celstack.interfaces.prototype import Prototype
    from celstack.interfaces.selector import Selector
    from celstack.interfaces.transform import Transform, Warp
    from celstack.model import Decomposer
    from celstack.openrun import OpenRun, open_run
    from celstack.rundir import RunDirectory
    from celstack.scene import EMPTY, Rendering, Scene
    from celstack.scenefile import read_scene, write_scene
    from celstack.train import Trained, run

# Public names are imported when they are first used, because most of them bring torch in.
_HOME = {
    "Assembly": "assembly",
    "Batch": "interfaces.dataset",
    "BrowserCode": "browsercode",
    "CandidateSelector": "interfaces.candidate_selector",
    "Candidates": "candidates",
    "Compositor": "interfaces.compositor",
    "Dataset": "interfaces.dataset",
    "Decomposer": "model",
    "EMPTY": "scene",
    "Encoder": "interfaces.encoder",
    "Evaluation": "assembly",
    "Metric": "interfaces.metric",
    "Observer": "interfaces.observer",
    "OpenRun": "openrun",
    "ActiveTransforms": "interfaces.predictor",
    "Outline": "interfaces.predictor",
    "Prediction": "interfaces.predictor",
    "Predictor": "interfaces.predictor",
    "Prototype": "interfaces.prototype",
    "Rendering": "scene",
    "RunDirectory": "rundir",
    "Scene": "scene",
    "Selector": "interfaces.selector",
    "Source": "interfaces.dataset",
    "Stage": "assembly",
    "Trained": "train",
    "Training": "assembly",
    "Transform": "interfaces.transform",
    "Transforms": "assembly",
    "Warp": "interfaces.transform",
    "hookimpl": "hookspecs",
    "open_run": "openrun",
    "read_images": "decompose",
    "read_scene": "scenefile",
    "run": "train",
    "score": "evaluate",
    "write_scene": "scenefile",
}

__all__ = [
    "EMPTY",
    "ActiveTransforms",
    "Assembly",
    "Batch",
    "BrowserCode",
    "CandidateSelector",
    "Candidates",
    "CelstackError",
    "Compositor",
    "Dataset",
    "Decomposer",
    "Encoder",
    "Evaluation",
    "Metric",
    "Observer",
    "OpenRun",
    "Outline",
    "Prediction",
    "Predictor",
    "Prototype",
    "Rendering",
    "RunDirectory",
    "Scene",
    "Selector",
    "Source",
    "Stage",
    "Trained",
    "Training",
    "Transform",
    "Transforms",
    "Warp",
    "hookimpl",
    "open_run",
    "read_images",
    "read_scene",
    "run",
    "score",
    "write_scene",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'celstack' has no attribute '{name}'")
    return getattr(import_module(f"celstack.{_HOME[name]}"), name)
