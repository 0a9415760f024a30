import numpy as np
import pytest
import torch

from celstack.data.availability import require_images
from celstack.data.batch_checks import batch_problem, image_shape_problem
from celstack.errors import CelstackError, RunFailedError
from celstack.interfaces.dataset import Batch
from celstack.testing.parts import PlainDataset


class Changed(PlainDataset):
    """Returns what a function makes of the images, and other ground truth."""

    def __init__(self, change=lambda images: images, **truth):
        self.change, self.truth = change, truth

    def read(self, split, indices):
        images = super().read(split, indices).images
        return Batch(self.change(images), **self.truth)


class Sized(PlainDataset):
    """Has as many test images as it is told."""

    def __init__(self, images):
        self.images = images

    def count(self, split):
        return 16 if split == "train" else self.images


def problem_of(dataset, count=2):
    return batch_problem(dataset, dataset.read("train", range(count)), count)


def refusal(dataset, **batch_sizes):
    with pytest.raises(CelstackError) as refused:
        require_images(dataset, batch_sizes)
    (line,) = str(refused.value).splitlines()
    return line


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda images: images.permute(0, 2, 3, 1),
            "images have the shape (2, 8, 10, 3); it must be (2, 3, 8, 10): "
            "return images.permute(0, 3, 1, 2)",
        ),
        (
            lambda images: images[:1],
            "images have the shape (1, 3, 8, 10); it must be (2, 3, 8, 10), "
            "as many as were asked for, each of image_shape",
        ),
        (
            lambda images: (images * 255).byte(),
            "images are uint8; they must be float32: return images.to(torch.float32) / 255",
        ),
        (
            lambda images: images.double(),
            "images are float64; they must be float32: return images.to(torch.float32)",
        ),
        (
            lambda images: torch.where(images > 0.5, 255.0, 0.0),
            "images range from 0 to 255; they must lie in [0, 1]: divide them by 255",
        ),
        (
            lambda images: torch.where(images > 0.5, 1.0, -1.0),
            "images range from -1 to 1; they must lie in [0, 1]: scale them to it",
        ),
        (
            lambda images: images.masked_fill(images > 0.5, torch.nan),
            "images hold values that are not finite (NaN or infinity); leave such images out, "
            "or repair them",
        ),
        (
            lambda images: images.masked_fill(images > 0.5, torch.inf),
            "images hold values that are not finite (NaN or infinity); leave such images out, "
            "or repair them",
        ),
        (
            lambda images: images.numpy(),
            "images is an object of type ndarray; it must be a tensor",
        ),
    ],
)
def test_what_is_wrong_with_images_is_said(change, problem):
    assert problem_of(Changed(change)) == problem


@pytest.mark.parametrize(
    ("truth", "problem"),
    [
        (
            {"instances": torch.zeros(2, 1, 8, 10, dtype=torch.int64)},
            "instances has the shape (2, 1, 8, 10); it must be (2, 8, 10)",
        ),
        (
            {"classes": torch.zeros(2, 10, 8, dtype=torch.int64)},
            "classes has the shape (2, 10, 8); it must be (2, 8, 10)",
        ),
        (
            {"label": torch.zeros(2, 1, dtype=torch.int64)},
            "label has the shape (2, 1); it must be (2,)",
        ),
        (
            {"label": torch.zeros(2)},
            "label is float32; it must be int64: return label.long()",
        ),
        (
            {"label": torch.tensor([0, -1])},
            "label has negative labels; they must be 0 or more, 0 for background",
        ),
        (
            {"label": [0, 1]},
            "label is an object of type list; it must be a tensor, or None if unknown",
        ),
    ],
)
def test_what_is_wrong_with_the_ground_truth_is_said(truth, problem):
    assert problem_of(Changed(**truth)) == problem


def test_a_batch_that_is_none_is_refused():
    assert batch_problem(PlainDataset(), torch.zeros(1), 1) == (
        "read returned an object of type Tensor; it must return a celstack.Batch"
    )


@pytest.mark.parametrize(
    "dataset",
    [
        PlainDataset(),
        Changed(lambda images: images + 1e-6 - 1e-6),
        Changed(lambda images: torch.where(images > 0.5, 1 + 1e-6, -1e-6)),
        Changed(label=torch.tensor([0, 1], dtype=torch.int32)),
    ],
)
def test_nothing_is_wrong_with_a_batch_that_can_be_used(dataset):
    assert problem_of(dataset) == ""


@pytest.mark.parametrize(
    ("shape", "problem"),
    [
        ((3, 8, 10), ""),
        ([1, 8, 10], ""),
        (tuple(np.array([3, 8, 10])), ""),
        (
            (8, 10, 3),
            "image_shape is (8, 10, 3), which looks like (H, W, C); it must be (C, H, W) = "
            "(3, 8, 10), and read must return images.permute(0, 3, 1, 2)",
        ),
        (
            (8, 10),
            "image_shape is (8, 10); it must be three positive integers (C, H, W)",
        ),
        (
            (3, 0, 10),
            "image_shape is (3, 0, 10); it must be three positive integers (C, H, W)",
        ),
        (None, "image_shape is None; it must be three positive integers (C, H, W)"),
        (
            (4, 8, 10),
            "image_shape is (4, 8, 10); it must be (C, H, W) with 1 to 3 channels",
        ),
    ],
)
def test_the_shape_of_images_is_channels_height_and_width(shape, problem):
    assert image_shape_problem(shape) == problem


def test_the_message_names_dataset_and_split():
    dataset = Changed(lambda images: images * 255)

    assert refusal(dataset, train=4).startswith(
        "changed: the first images of 'train': images range from "
    )


def test_every_split_that_is_needed_is_checked():
    class Turned(PlainDataset):
        def read(self, split, indices):
            batch = super().read(split, indices)
            return batch if split == "train" else Batch(batch.images.mT)

    require_images(Turned(), {"train": 4})

    assert refusal(Turned(), train=4, test=4).startswith("turned: the first images of 'test': ")


@pytest.mark.parametrize(("size", "images"), [(4, 4), (100, 16)])
def test_one_batch_is_read_of_each_split(size, images):
    asked = []

    class Counting(PlainDataset):
        def read(self, split, indices):
            asked.append(len(indices))
            return super().read(split, indices)

    require_images(Counting(), {"train": size})

    assert asked == [images]


def test_an_empty_split_is_refused_with_what_to_do():
    assert refusal(Sized(0), train=4, test=4) == (
        "sized: the split 'test' has no images; check the options and the files of the "
        "dataset, or evaluate on another split, as with --set evaluation.split=train"
    )


def test_a_count_that_is_no_integer_is_refused():
    assert refusal(Sized(2.5), test=4) == (
        "sized: count('test') returned 2.5; it must return an integer"
    )


def test_files_that_cannot_be_read_fail_the_run():
    class Lost(PlainDataset):
        def read(self, split, indices):
            raise FileNotFoundError(2, "No such file or directory", "stars.npy")

    with pytest.raises(RunFailedError) as failed:
        require_images(Lost(), {"train": 4})

    assert str(failed.value) == "lost: no images: stars.npy: No such file or directory"


@pytest.mark.parametrize("method", ["count", "read"])
def test_any_other_failure_names_dataset_and_split(monkeypatch, method):
    class Clumsy(PlainDataset):
        """Fails on one split."""

    whole = getattr(PlainDataset, method)

    def fail(self, split, *rest):
        if split == "test":
            raise KeyError("images")
        return whole(self, split, *rest)

    monkeypatch.setattr(Clumsy, method, fail, raising=False)

    assert refusal(Clumsy(), train=4, test=4) == (
        "clumsy: the first images of 'test': cannot be read: KeyError: 'images'"
    )
