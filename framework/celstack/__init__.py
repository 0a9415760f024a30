"""Celstack: unsupervised decomposition of images into layers of learned sprites.

The names in ``__all__`` are the public interface, together with the packages
``celstack.geometry``, ``celstack.model``, ``celstack.data``, ``celstack.evaluation``,
``celstack.report`` and ``celstack.testing`` and the modules ``celstack.text``,
``celstack.progress`` and ``celstack.model.numba_jit``::

    from celstack import Warp, hookimpl, open_run, run
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from celstack.errors import CelstackError, StopTraining
from celstack.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from celstack.export.decompose import decompose, read_images
    from celstack.export.scene_editing import (
        move_objects,
        object_centers,
        recolor_sprites,
        resize_objects,
        swap_sprites,
    )
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
    from celstack.recipe.assembly import (
        Assembly,
        Evaluation,
        Stage,
        Training,
        Transforms,
        Validation,
    )
    from celstack.recipe.load_assembly import assembly
    from celstack.recipe.schedule import ScheduledStage
    from celstack.registry.catalog import Catalog
    from celstack.runs.directory import RunDirectory
    from celstack.runs.findings import Finding
    from celstack.runs.open import OpenRun, open_run
    from celstack.runs.validated import Validated
    from celstack.scene import EMPTY, Rendering, Scene
    from celstack.signals import INTERRUPTED_TWICE
    from celstack.tensor_fields import map_tensors
    from celstack.text import describe_error, format_value
    from celstack.training.evaluate import score
    from celstack.training.loop import Trained, run

# Imported when first used, because most of them import torch.
_HOME = {
    "Assembly": "recipe.assembly",
    "Batch": "interfaces.dataset",
    "BrowserCode": "interfaces.browser_code",
    "CandidateSelector": "model.candidate_selector",
    "Candidates": "model.candidates",
    "Catalog": "registry.catalog",
    "Compositor": "interfaces.compositor",
    "Dataset": "interfaces.dataset",
    "Decomposer": "model.decomposer",
    "EMPTY": "scene",
    "Finding": "runs.findings",
    "INTERRUPTED_TWICE": "signals",
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
    "ScheduledStage": "recipe.schedule",
    "Selector": "interfaces.selector",
    "Source": "interfaces.dataset",
    "Stage": "recipe.assembly",
    "StatusConsole": "progress",
    "Trained": "training.loop",
    "Training": "recipe.assembly",
    "Transform": "interfaces.transform",
    "Transforms": "recipe.assembly",
    "Validated": "runs.validated",
    "Validation": "recipe.assembly",
    "Warp": "interfaces.transform",
    "WorkProgress": "progress",
    "assembly": "recipe.load_assembly",
    "decompose": "export.decompose",
    "describe_error": "text",
    "format_value": "text",
    "hookimpl": "hookspecs",
    "map_tensors": "tensor_fields",
    "move_objects": "export.scene_editing",
    "object_centers": "export.scene_editing",
    "open_run": "runs.open",
    "read_images": "export.decompose",
    "read_scene": "export.scene_json",
    "recolor_sprites": "export.scene_editing",
    "resize_objects": "export.scene_editing",
    "run": "training.loop",
    "score": "training.evaluate",
    "swap_sprites": "export.scene_editing",
    "write_scene": "export.scene_json",
}

__all__ = [
    "EMPTY",
    "INTERRUPTED_TWICE",
    "ActiveTransforms",
    "Assembly",
    "Batch",
    "BrowserCode",
    "CandidateSelector",
    "Candidates",
    "Catalog",
    "CelstackError",
    "Compositor",
    "Dataset",
    "Decomposer",
    "Encoder",
    "Evaluation",
    "Finding",
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
    "ScheduledStage",
    "Selector",
    "Source",
    "Stage",
    "StatusConsole",
    "StopTraining",
    "Trained",
    "Training",
    "Transform",
    "Transforms",
    "Validated",
    "Validation",
    "Warp",
    "WorkProgress",
    "assembly",
    "decompose",
    "describe_error",
    "format_value",
    "hookimpl",
    "map_tensors",
    "move_objects",
    "object_centers",
    "open_run",
    "read_images",
    "read_scene",
    "recolor_sprites",
    "resize_objects",
    "run",
    "score",
    "swap_sprites",
    "write_scene",
]

__getattr__ = lazy_getattr(__name__, _HOME)
