"""Base class of datasets that are read from an official archive into memory."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from celstack import Batch, Dataset
from celstack.data import require_file
from celstack_kit.formats.archive import Archive
from celstack_kit.formats.images import as_tensor, decode
from celstack_kit.formats.read_errors import load_valid


class ArchiveDataset(Dataset):
    """Images of an archive, resized and held in memory with their labels, in one split.

    Subclasses name the images (``image_names``), load one of them (``load_image``) and make a
    batch of images and labels (``make_batch``).
    """

    splits = ("train",)
    max_objects = 1
    files: tuple[str, str]
    """The archive, and the folder inside, which may also lie on disk unpacked."""

    def __init__(self, root: Path | None, size: tuple[int, int], skip_broken: bool) -> None:
        self.root, self.size, self.skip_broken = root, size, skip_broken

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Three channels of the size that was asked for."""
        return (3, *self.size)

    def count(self, split: str) -> int:
        """Return the number of images in the archive."""
        assert split in self.splits
        return len(self._tensors[0])

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Return images from memory; at the first call, decode all of them."""
        assert split in self.splits
        images, labels = self._tensors
        chosen = torch.as_tensor(list(indices), dtype=torch.int64)
        return self.make_batch(images[chosen].float() / 255, labels[chosen])

    @abstractmethod
    def image_names(self, archive: Archive) -> list[str]:
        """Return the names of all images, after checking that the layout is as published."""

    @abstractmethod
    def load_image(self, archive: Archive, name: str) -> tuple[Tensor, Tensor]:
        """Return a resized image (uint8) and its label, of any shape."""

    @abstractmethod
    def make_batch(self, images: Float[Tensor, "B 3 H W"], labels: Tensor) -> Batch:
        """Return a batch of images and their labels."""

    def decode(self, archive: Archive, name: str) -> Image.Image:
        """Decode an image of the archive."""
        return decode(archive.read(name), archive.describe(name))

    def resize(self, image: Image.Image) -> Tensor:
        """Resize an image to the dataset's size, ignoring its aspect ratio."""
        return as_tensor(image.resize(self.size[::-1], Image.Resampling.BILINEAR))

    # Tensors, because torch shares their memory with worker processes.
    @cached_property
    def _tensors(self) -> tuple[Tensor, Tensor]:
        path = require_file(self.name, self.root, self.files, self.remedy)
        with Archive(path, self.files[1]) as archive:
            loaded = load_valid(
                self.name,
                self.image_names(archive),
                lambda name: self.load_image(archive, name),
                self.skip_broken,
            )
        images, labels = zip(*(pair for _, pair in loaded), strict=True)
        return torch.stack(images), torch.stack(labels)
