"""Generated datasets: their images are made once, and kept."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from celstack import Batch, Dataset
from celstack_kit.dataset_support.cache_writer import Writer
from celstack_kit.dataset_support.image_cache import Stored, stored


class Generated(Dataset):
    """Images with the instance and the class of every pixel, in the splits train and test.

    A dataset says how it generates a split (``facts``, ``generate``). That is done once, and
    kept in the user's cache.
    """

    splits = ("train", "test")
    generated = True
    version = 1
    """Counts up when the same options give other images."""

    def __init__(self, count: int, test_count: int) -> None:
        self.counts = {"train": count, "test": test_count}
        self._made: dict[str, Stored] = {}

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """Return the options that images depend on, apart from the split and its count."""

    @abstractmethod
    def generate(self, split: str, writer: Writer) -> None:
        """Add all images of a split to the writer."""

    def count(self, split: str) -> int:
        """Return how many images there are; the first time, they are made."""
        # Made here and not when they are read: readers may be processes without children.
        return len(self._stored(split))

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        """Look the images up; the first time, they are made."""
        return self._stored(split).read(indices)

    def _stored(self, split: str) -> Stored:
        if split not in self._made:
            total = self.counts[split]
            facts = {**self.facts(), "split": split, "count": total, "version": self.version}
            made = stored(self.name, facts, lambda writer: self.generate(split, writer), total)
            assert len(made) == total, "as many as were asked for"
            self._made[split] = made
        return self._made[split]
