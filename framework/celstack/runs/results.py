"""Results of a run: everything that is written into its folder when it has been evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from PIL import Image

from celstack.evaluation.score_metadata import image_scores, percentages, score_metadata
from celstack.evaluation.sprite_stats import SpriteStats
from celstack.evaluation.visualize import (
    draw_best_sprites,
    draw_examples,
    draw_sprites,
    to_pil_image,
)
from celstack.model.decomposer import Decomposer
from celstack.recipe.assembly import Assembly
from celstack.runs.examples import choose_examples, example_file_names


class RunResults(NamedTuple):
    """What ``RunDirectory.save_results`` writes."""

    scores: dict[str, float]
    metadata: dict[str, Any]
    """The images that scores were measured on, and their units."""
    image_scores: dict[str, list[float]]
    sprites: list[Image.Image]
    example_sheet: Image.Image
    """Some images of the evaluation split, their reconstructions and layers."""
    sprite_stats: dict[str, Any] | None = None
    examples: dict[str, Image.Image] = {}
    """The best, the worst and some random images of the evaluation, by file name."""
    best_sprites: Image.Image | None = None


def collect_results(
    decomposer: Decomposer,
    assembly: Assembly,
    scores: Mapping[str, float],
    stats: SpriteStats | None = None,
    failures: Mapping[str, str] | None = None,
) -> RunResults:
    """Choose examples and draw pictures of an evaluated model.

    Args:
        decomposer: The trained model.
        assembly: The assembly whose metrics computed ``scores``.
        scores: The score of each metric.
        stats: Statistics of the same evaluation. Without them there are no statistics, no
            examples and no best sprites in the results.
        failures: Why metrics have no score, by their names.
    """
    results = RunResults(
        scores=dict(scores),
        metadata=score_metadata(assembly, scores, failures or {}),
        image_scores=image_scores(assembly.metrics, scores),
        sprites=draw_sprites(decomposer),
        example_sheet=draw_examples(decomposer, assembly),
    )
    if stats is None:
        return results
    return results._replace(
        sprite_stats=stats.to_dict(assembly.dataset.class_names),
        examples=_draw_chosen_examples(assembly, scores, stats.images),
        best_sprites=draw_best_sprites(decomposer, stats, assembly),
    )


def _draw_chosen_examples(
    assembly: Assembly, scores: Mapping[str, float], count: int
) -> dict[str, Image.Image]:
    metrics = assembly.metrics
    per_image = image_scores(metrics, scores)
    examples = choose_examples(per_image, percentages(metrics, scores), count)
    numbers = [example.number for example in examples]
    images = assembly.dataset.read(assembly.evaluation.split, numbers).images
    names = example_file_names(examples)
    return {name: to_pil_image(image) for name, image in zip(names, images, strict=True)}
