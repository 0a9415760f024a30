"""How much a recipe's figures change when its images do.

    python tests/benchmarks/robustness.py RECIPE [--seed N] [--noise 0.1] [--scale 1.25]

Runs the recipe three times: as it is; with a share of its images replaced by noise, judged on
the others; and with images, sprites and windows of another size, where the dataset has one.
"""

import argparse
from collections.abc import Sequence

import attrs
import torch

from celstack import Batch, Dataset, run
from celstack.recipe.build import assemble
from celstack.recipe.load import read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog

SIZES = ("dataset.size", "sprites.size", "sprites.mask_sigma", "selector.window")


class Noisy(Dataset):
    """Another dataset, some of whose images are noise; ``sound`` is a split of the others."""

    def __init__(self, dataset: Dataset, split: str, share: float) -> None:
        self.dataset, self.name = dataset, dataset.name
        self.splits = (*dataset.splits, "sound")
        self.split, self.class_names = split, dataset.class_names
        self.noisy = {name: self._some(dataset.count(name), share) for name in dataset.splits}
        spoilt = self.noisy[split]
        self.sound = [n for n in range(dataset.count(split)) if n not in spoilt]

    @staticmethod
    def _some(count: int, share: float) -> set[int]:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(1))
        return set(order[: round(share * count)].tolist())

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return self.dataset.image_shape

    def count(self, split: str) -> int:
        return len(self.sound) if split == "sound" else self.dataset.count(split)

    def read(self, split: str, indices: Sequence[int]) -> Batch:
        if split == "sound":
            return self.dataset.read(self.split, [self.sound[index] for index in indices])
        batch = self.dataset.read(split, indices)
        for place, index in enumerate(indices):
            if index in self.noisy[split]:
                generator = torch.Generator().manual_seed(index)
                batch.images[place] = torch.rand(self.image_shape, generator=generator)
        return batch


def resized(recipe: str, scale: float) -> list[str] | None:
    """Return what makes everything larger; None if the dataset has but one size."""
    table = resolve(read_recipe(recipe), Catalog()).as_table()
    changes = []
    for place in SIZES:
        section, option = place.split(".")
        value = table[section].get(option)
        if value is None and option == "size" and section == "dataset":
            return None
        if value is not None:
            whole = option == "size"
            values = value if isinstance(value, list) else [value]
            scaled = [round(scale * one) if whole else scale * one for one in values]
            changes.append(f"{place}={scaled if isinstance(value, list) else scaled[0]}")
    return changes


def scores(recipe: str, overrides: list[str], noise: float = 0.0) -> dict[str, float]:
    catalog = Catalog()
    assembly = assemble(resolve(read_recipe(recipe, overrides), catalog), catalog)
    changes = {"observers": []}
    if noise:
        changes["dataset"] = Noisy(assembly.dataset, assembly.evaluation.split, noise)
        changes["evaluation"] = attrs.evolve(assembly.evaluation, split="sound")
    return run(attrs.evolve(assembly, **changes)).scores


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("recipe")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", type=float, default=0.1)
    parser.add_argument("--scale", type=float, default=1.25)
    arguments = parser.parse_args()
    recipe, seed = arguments.recipe, [f"seed={arguments.seed}"]
    print("as it is:", scores(recipe, seed), flush=True)
    title = f"{arguments.noise:.0%} of the images are noise:"
    print(title, scores(recipe, seed, arguments.noise), flush=True)
    larger = resized(recipe, arguments.scale)
    if larger is not None:
        title = f"{arguments.scale} times as large ({', '.join(larger)}):"
        print(title, scores(recipe, [*seed, *larger]), flush=True)


if __name__ == "__main__":
    main()
