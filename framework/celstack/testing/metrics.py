"""check_metric: the laws of Metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import torch

from celstack.interfaces.dataset import Batch
from celstack.interfaces.metric import Metric
from celstack.scene import EMPTY, Rendering, Scene
from celstack.tensor_fields import map_tensors
from celstack.testing.assertions import require_law, seeded

IMAGES, LAYERS, SPRITES, CHANNELS, HEIGHT, WIDTH = 6, 2, 3, 3, 5, 6
Judged = tuple[Scene, Rendering, Batch]


@seeded()
def check_metric(metric: Metric) -> None:
    """Check the laws of Metric on random scenes, renderings and ground truth."""
    known = [field.name for field in attrs.fields(Batch)]
    strange = [need for need in metric.needs if need not in known]
    require_law(metric, not strange, f"needs are fields of Batch ({known}), but not {strange}")
    # Only what the metric says it needs is there.
    judged = _judged(metric.needs)
    whole = _score(metric, [judged])
    law = f"compute returns one finite float, but it is {whole!r}"
    require_law(metric, isinstance(whole, float) and math.isfinite(whole), law)
    scores = _image_scores(metric)
    require_law(metric, _near(metric.compute(), whole), "compute changes nothing, but it did")
    for sizes in ([1] * IMAGES, [2, 4], [3, 2, 1]):
        grouped = _score(metric, _split(judged, sizes))
        law = f"grouping images into batches of {sizes} does not change the number"
        require_law(metric, _near(grouped, whole), f"{law}, but {grouped} is not {whole}")
        law = f"grouping images into batches of {sizes} does not change scores, but it did"
        require_law(metric, _alike(_image_scores(metric), scores), law)
    _score(metric, _split(judged, [1] * IMAGES)[::-1])
    law = "scores are in the order of images, but from the last to the first they are not"
    require_law(metric, _alike(_image_scores(metric)[::-1], scores), law)
    first, rest = _split(judged, [2, 4])
    fresh = _score(metric, [rest])
    _score(metric, [first])
    require_law(metric, _near(_score(metric, [rest]), fresh), "reset forgets everything")


def _image_scores(metric: Metric) -> list[float]:
    """Return the scores of all images; none where the metric keeps none."""
    if metric.scores is None:
        return []
    scores = list(metric.scores)
    sound = len(scores) == IMAGES and all(isinstance(score, float) for score in scores)
    law = f"scores has one float for each of {IMAGES} images, or is None, but it is {scores}"
    require_law(metric, sound, law)
    return scores


def _judged(needs: Sequence[str]) -> Judged:
    pixels = (IMAGES, HEIGHT, WIDTH)
    truth = {
        "instances": torch.randint(LAYERS + 1, pixels),
        "classes": torch.randint(SPRITES + 1, pixels),
        "label": torch.randint(SPRITES, (IMAGES,)),
    }
    scene = Scene(
        sprite=torch.randint(EMPTY, SPRITES, (IMAGES, LAYERS)),
        sprite_params=torch.zeros(IMAGES, LAYERS, 0),
        layer_params=torch.randn(IMAGES, LAYERS, 2),
        occlusion=torch.ones(LAYERS, LAYERS).tril(-1).expand(IMAGES, -1, -1),
        background=torch.zeros(IMAGES, dtype=torch.int64),
        background_params=torch.zeros(IMAGES, 0),
    )
    layers = torch.rand(IMAGES, LAYERS, CHANNELS + 1, HEIGHT, WIDTH)
    rendering = Rendering(
        image=torch.rand(IMAGES, CHANNELS, HEIGHT, WIDTH),
        layers=layers,
        backdrop=torch.rand(IMAGES, CHANNELS, HEIGHT, WIDTH),
        visible=layers[:, :, -1].softmax(1),
    )
    known = {name: truth[name] for name in needs if name in truth}
    return scene, rendering, Batch(torch.rand(IMAGES, CHANNELS, HEIGHT, WIDTH), **known)


def _split(judged: Judged, sizes: Sequence[int]) -> list[Judged]:
    scene, rendering, batch = judged
    groups = []
    for images in torch.arange(IMAGES).split(list(sizes)):
        some = map_tensors(lambda values, images=images: values[images], batch)
        groups.append((scene[images], rendering[images], some))
    return groups


def _score(metric: Metric, batches: Sequence[Judged]) -> Any:
    metric.reset()
    for scene, rendering, batch in batches:
        metric.update(scene, rendering, batch)
    return metric.compute()


def _near(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=1e-5, abs_tol=1e-6)


def _alike(left: Sequence[float], right: Sequence[float]) -> bool:
    """Return whether scores are equal up to rounding; NaN equals NaN here."""
    pairs = zip(left, right, strict=True)
    return all(_near(a, b) or (math.isnan(a) and math.isnan(b)) for a, b in pairs)
