"""Dataset: images, and what is known about them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import attrs
from jaxtyping import Float, Int
from torch import Tensor

from celstack.interfaces.part import Part


@attrs.frozen(eq=False)
class Batch:
    """Images in [0, 1], and the ground truth that the dataset has of them.

    ``instances`` and ``classes`` label pixels, 0 for background; ``label`` is the class of
    a whole image. Each is None where it is not known.
    """

    images: Float[Tensor, "B C H W"]
    instances: Int[Tensor, "B H W"] | None = None
    classes: Int[Tensor, "B H W"] | None = None
    label: Int[Tensor, " B"] | None = None

    def __len__(self) -> int:
        return len(self.images)


class Dataset(Part):
    """Images in splits.

    A dataset is read by lists of indices, so that one in memory answers with one lookup::

        class Noise(Dataset):
            image_shape = (3, 16, 16)

            def count(self, split):
                return 100

            def read(self, split, indices):
                ...

    Laws:
        ``read`` is a function: the same split and indices give the same batch, in any order
        and in any process, however indices are grouped. It leaves the random state alone.
        Images are float32 in [0, 1] and have the shape ``image_shape``; labels are int64.
        One split is called ``train``, no split is empty, and a dataset can be pickled.
    """

    splits: tuple[str, ...] = ("train", "test")
    most_objects: int | None = None
    """The greatest number of objects in an image, where that is known."""
    class_names: tuple[str, ...] = ()
    """What classes are called, where that is known; class 1 of a pixel is the first."""

    @property
    @abstractmethod
    def image_shape(self) -> tuple[int, int, int]:
        """The shape (C, H, W) of every image."""

    @abstractmethod
    def count(self, split: str) -> int:
        """Return the number of images in a split."""

    @abstractmethod
    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Return these images of a split, in this order."""
