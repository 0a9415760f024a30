"""Evaluate a model on a dataset with metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from celstack.data.loader import ordered_batches, to_device
from celstack.evaluation.metric_list import MetricList, warn_of_failures
from celstack.evaluation.sprite_stats import SpriteStats
from celstack.interfaces.dataset import Dataset
from celstack.interfaces.metric import Metric
from celstack.model.decomposer import Decomposer
from celstack.model.eval_mode import eval_mode
from celstack.recipe.assembly import Evaluation
from celstack.scene import Scene
from celstack.training.distributed.engine import Engine


def score(
    decomposer: Decomposer,
    dataset: Dataset,
    metrics: Sequence[Metric],
    evaluation: Evaluation,
    watch: Callable[[int], object] | None = None,
    stats: SpriteStats | None = None,
    engine: Engine | None = None,
    failures: dict[str, str] | None = None,
) -> dict[str, float]:
    """Return the scores of a model by the names of the metrics.

    A metric whose ground truth the dataset does not have is left out. So is one that raises or
    returns no number: it costs only itself. Metrics with scores of single images have these
    afterwards.

    Args:
        decomposer: The model; it is evaluated in evaluation mode and left in its own.
        dataset: The images and their ground truth.
        metrics: What to compute; they are reset first.
        evaluation: The split, the number of images and the batch size.
        watch: Called with the number of images after each batch.
        stats: Collects how sprites are used.
        engine: Splits each batch among ranks; all ranks return the same scores.
        failures: Collects why metrics have no score, by their names. Without it, a warning
            is logged for each, on rank 0.

    Example:
        score(trained.decomposer, assembly.dataset, assembly.metrics, assembly.evaluation)
    """
    device = next(decomposer.parameters()).device
    engine = engine or Engine()
    able = MetricList(metrics)
    count, size = evaluation.images, evaluation.batch_size
    with eval_mode(decomposer):
        for batch in ordered_batches(dataset, evaluation.split, count, size):
            batch = to_device(batch, device)
            with torch.no_grad():
                engine.group.begin_batch(len(batch))
                shard = batch.images[engine.group.local_slice(len(batch))]
                scene = engine.gather_scene(decomposer.explain(shard))
                rendering = decomposer.render(scene)
            able.update(merge_views(scene, decomposer.sprites.views), rendering, batch)
            if stats is not None:
                stats.add(scene, rendering, batch)
            if watch is not None:
                watch(len(batch))
    scores = able.compute()
    if failures is not None:
        failures.update(able.failures)
    elif engine.group.is_main:
        warn_of_failures(able.failures)
    return scores


def merge_views(scene: Scene, views: int) -> Scene:
    """Return a scene whose sprites are counted as objects, not as views of them.

    It is for scores, and cannot be rendered, unless sprites have one view only.
    """
    if views == 1:
        return scene
    return scene.evolve(sprite=scene.sprite.div(views, rounding_mode="floor"))
