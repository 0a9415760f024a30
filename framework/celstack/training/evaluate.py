"""Model, dataset and metrics to numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from celstack.data.loader import in_order, to_device
from celstack.evaluation.sprite_stats import SpriteStats
from celstack.interfaces.dataset import Dataset
from celstack.interfaces.metric import Metric
from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Evaluation
from celstack.training.distributed.engine import Engine


def score(
    decomposer: Decomposer,
    dataset: Dataset,
    metrics: Sequence[Metric],
    evaluation: Evaluation,
    watch: Callable[[int], None] | None = None,
    census: SpriteStats | None = None,
    engine: Engine | None = None,
) -> dict[str, float]:
    """Score a model; a metric whose ground truth the dataset has not got is left out.

    Metrics that keep the scores of images have them afterwards. ``watch`` is told the size of
    each batch that is done; ``census`` counts what sprites are used for. The processes of an
    ``engine`` explain a part of each batch, and all have the scores.
    """
    device = next(decomposer.parameters()).device
    engine = engine or Engine()
    was_training = decomposer.training
    decomposer.eval()
    for metric in metrics:
        metric.reset()
    able = list(metrics)
    count, size = evaluation.images, evaluation.batch_size
    try:
        for batch in in_order(dataset, evaluation.split, count, size):
            able = [m for m in able if all(getattr(batch, n) is not None for n in m.needs)]
            batch = to_device(batch, device)
            with torch.no_grad():
                engine.processes.divide(len(batch))
                own = batch.images[engine.processes.part(len(batch))]
                scene = engine.whole(decomposer.explain(own))
                rendering = decomposer.render(scene)
            for metric in able:
                metric.update(scene, rendering, batch)
            if census is not None:
                census.add(scene, rendering, batch)
            if watch is not None:
                watch(len(batch))
    finally:
        decomposer.train(was_training)
    return {metric.name: metric.compute() for metric in able}
