"""check_dataset: the laws of Dataset."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import torch

from celstack.data.batch_checks import batch_problem, image_shape_problem
from celstack.interfaces.dataset import Batch, Dataset
from celstack.tensor_fields import map_tensors, tensor_fields
from celstack.testing.assertions import require_law

MAX_IMAGES_READ = 6
"""How many images of each split are read."""


def check_dataset(dataset: Dataset) -> None:
    """Check the laws of Dataset on a few images of every split.

    The files of the dataset have to be there.
    """
    require_law(dataset, "train" in dataset.splits, "there is a split 'train'")
    problem = image_shape_problem(dataset.image_shape)
    require_law(dataset, not problem, problem)
    copied = _pickled(dataset)
    for split in dataset.splits:
        count = dataset.count(split)
        require_law(dataset, count > 0, f"every split has images, but '{split}' has {count}")
        indices = np.linspace(0, count - 1, min(MAX_IMAGES_READ, count)).astype(int).tolist()
        before = _random_state()
        batch = dataset.read(split, indices)
        law = "read does not use or change the random state, but it does"
        require_law(dataset, _random_state() == before, law)
        # What every run checks, and what only this check is strict about.
        problem = batch_problem(dataset, batch, len(indices))
        require_law(dataset, not problem, problem)
        _check_range(dataset, batch)
        _check_truth(dataset, batch)
        _check_function(dataset, split, indices, batch)
        same = _same(copied.read(split, indices), batch)
        law = "the same indices give the same batch in any process, but a pickled copy differs"
        require_law(dataset, same, law)


def _pickled(dataset: Dataset) -> Dataset:
    try:
        copied: Dataset = pickle.loads(pickle.dumps(dataset))  # noqa: S301 - our own bytes
    except Exception as error:
        law = f"a dataset can be pickled, for workers, but: {type(error).__name__}: {error}"
        raise AssertionError(f"{type(dataset).__name__}: {law}") from error
    return copied


def _random_state() -> tuple[object, ...]:
    return torch.get_rng_state().tolist(), str(np.random.get_state(legacy=False))


def _check_range(dataset: Dataset, batch: Batch) -> None:
    inside = bool((batch.images >= 0).all() and (batch.images <= 1).all())
    require_law(dataset, inside, "images lie in [0, 1]")


def _check_truth(dataset: Dataset, batch: Batch) -> None:
    for name in ("instances", "classes", "label"):
        labels = getattr(batch, name)
        whole = labels is None or labels.dtype == torch.int64
        require_law(dataset, whole, f"{name} is int64")
    names = len(dataset.class_names)
    if batch.classes is not None and names:
        known = int(batch.classes.max()) <= names
        require_law(dataset, known, "class_names has a name for each class, counted from 1")
    if batch.instances is not None and dataset.max_objects is not None:
        most = max(len(image[image > 0].unique()) for image in batch.instances)
        law = f"no image shows more than max_objects = {dataset.max_objects}, but {most} are"
        require_law(dataset, most <= dataset.max_objects, law)


def _check_function(dataset: Dataset, split: str, indices: Sequence[int], batch: Batch) -> None:
    law = "read is a pure function, but the same indices {} give other images"
    backwards = dataset.read(split, list(reversed(indices)))
    places = list(range(len(indices)))
    same = _same(_some(backwards, places[::-1]), batch)
    require_law(dataset, same, law.format("in another order"))
    for place, index in enumerate(indices):
        alone = dataset.read(split, [index])
        same = _same(alone, _some(batch, [place]))
        require_law(dataset, same, law.format("one by one"))
    require_law(
        dataset, _same(dataset.read(split, indices), batch), law.format("a second time")
    )


def _some(batch: Batch, rows: list[int]) -> Batch:
    return map_tensors(lambda values: values[rows], batch)


def _same(left: Batch, right: Batch) -> bool:
    a, b = tensor_fields(left), tensor_fields(right)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
