"""Celstack: learn the sprites that images are made of, and see images as stacks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celstack.errors import CelstackError
from celstack.lazy import lazy_names

if TYPE_CHECKING:
    from celstack.export.decompose import read_images
    from celstack.export.scene_json import read_scene, write_scene
    from celstack.hookspecs import hookimpl
    from celstack.interfaces.browser_code import BrowserCode
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
    from celstack.model.candidate_selector import CandidateSelector
    from celstack.model.candidates import Candidates
    from celstack.model.decomposer import Decomposer
    from celstack.model.objective import Loss
    from celstack.progress import StatusConsole, WorkProgress
    from celstack.recipe.assembly import Assembly, Evaluation, Stage, Training, Transforms
    from celstack.runs.directory import RunDirectory
    from celstack.runs.open import OpenRun, open_run
    from celstack.scene import EMPTY, Rendering, Scene
    from celstack.text import describe_error, format_value
    from celstack.training.evaluate import score
    from celstack.training.loop import Trained, run

# Public names are imported when they are first used, because most of them bring torch in.
_HOME = {
    "Assembly": "recipe.assembly",
    "Batch": "interfaces.dataset",
    "BrowserCode": "interfaces.browser_code",
    "CandidateSelector": "model.candidate_selector",
    "Candidates": "model.candidates",
    "Compositor": "interfaces.compositor",
    "Dataset": "interfaces.dataset",
    "Decomposer": "model.decomposer",
    "EMPTY": "scene",
    "Encoder": "interfaces.encoder",
    "Loss": "model.objective",
    "Evaluation": "recipe.assembly",
    "Metric": "interfaces.metric",
    "Observer": "interfaces.observer",
    "OpenRun": "runs.open",
    "ActiveTransforms": "interfaces.predictor",
    "Outline": "interfaces.predictor",
    "Prediction": "interfaces.predictor",
    "Predictor": "interfaces.predictor",
    "Prototype": "interfaces.prototype",
    "Rendering": "scene",
    "RunDirectory": "runs.directory",
    "Scene": "scene",
    "Selector": "interfaces.selector",
    "Source": "interfaces.dataset",
    "Stage": "recipe.assembly",
    "StatusConsole": "progress",
    "Trained": "training.loop",
    "Training": "recipe.assembly",
    "Transform": "interfaces.transform",
    "Transforms": "recipe.assembly",
    "Warp": "interfaces.transform",
    "WorkProgress": "progress",
    "describe_error": "text",
    "format_value": "text",
    "hookimpl": "hookspecs",
    "open_run": "runs.open",
    "read_images": "export.decompose",
    "read_scene": "export.scene_json",
    "run": "training.loop",
    "score": "training.evaluate",
    "write_scene": "export.scene_json",
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
    "Loss",
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
    "StatusConsole",
    "Trained",
    "Training",
    "Transform",
    "Transforms",
    "Warp",
    "WorkProgress",
    "describe_error",
    "format_value",
    "hookimpl",
    "open_run",
    "read_images",
    "read_scene",
    "run",
    "score",
    "write_scene",
]

__getattr__ = lazy_names(__name__, _HOME)
