"""Base class of generated datasets: images are generated once and cached on disk."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from celstack import Batch, Dataset
from celstack_kit.dataset_support.cache_writer import CacheWriter
from celstack_kit.dataset_support.image_cache import CachedImages, cached_images


class GeneratedDataset(Dataset):
    """Images with instance and class maps, in the splits train and test.

    Subclasses implement ``generate`` and ``cache_key``. Each split is generated at its first
    use and kept in the user's cache folder.
    """

    splits = ("train", "test")
    generated = True
    version = 1
    """Incremented when the same options generate other images; part of the cache key."""

    def __init__(self, count: int, test_count: int) -> None:
        self.counts = {"train": count, "test": test_count}
        self._images: dict[str, CachedImages] = {}

    @abstractmethod
    def cache_key(self) -> Mapping[str, Any]:
        """Return the options that the images depend on, except split and count."""

    @abstractmethod
    def generate(self, split: str, writer: CacheWriter) -> None:
        """Add all images of a split to the writer."""

    def count(self, split: str) -> int:
        """Return the number of images, generating them at the first call."""
        # Generated here rather than in read: data loader workers may not start processes.
        return len(self._load(split))

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Return images from the cache, generating them at the first call."""
        return self._load(split).read(indices)

    def _load(self, split: str) -> CachedImages:
        if split not in self._images:
            total = self.counts[split]
            key = {**self.cache_key(), "split": split, "count": total, "version": self.version}
            images = cached_images(self.name, key, lambda w: self.generate(split, w), total)
            assert len(images) == total, "generate adds as many images as the split has"
            self._images[split] = images
        return self._images[split]
