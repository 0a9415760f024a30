"""What a run can be opened without: the images of its dataset, and its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from celstack.data.batch_checks import image_shape_problem
from celstack.errors import CelstackError, RecipeError
from celstack.interfaces.dataset import Batch, Dataset
from celstack.keypath import join
from celstack.recipe.build import build_part
from celstack.recipe.load import Recipe
from celstack.recipe.resolve import resolve_part
from celstack.registry.catalog import Catalog
from celstack.text import describe_error


class AbsentDataset(Dataset):
    """Stands in for the dataset of a run where that cannot be used, and knows its shape."""

    def __init__(
        self, use: str, image_shape: tuple[int, int, int], splits: list[str], reason: str
    ) -> None:
        self.name, self.shape, self.splits = use, image_shape, tuple(splits)
        self.reason = f"{use}: its images are not available here: {reason}"

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The shape of the images that the run was trained on."""
        return self.shape

    def count(self, split: str) -> int:  # noqa: ARG002
        """Say why there are no images."""
        self._refuse()

    def read(self, split: str, indices: Sequence[int]) -> Batch:  # noqa: ARG002
        """Say why there are no images."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise CelstackError(self.reason)


def find_dataset(
    recipe: Recipe, catalog: Catalog, image_shape: tuple[int, int, int]
) -> Dataset:
    """Build the dataset of a run, or a stand-in if it is of no use here.

    The plugin may be missing, its constructor or its ``image_shape`` may need files that are
    not on this machine, or the files there may hold images of another shape.

    Args:
        recipe: The recipe of the run.
        catalog: The installed plugins.
        image_shape: The shape of the images that the run was trained on.
    """
    table = recipe.table.get("dataset")
    try:
        node = resolve_part(recipe.source, "dataset", table, "dataset", catalog)
        dataset: Dataset = build_part(recipe.source, node, catalog)
        found = dataset.image_shape
        if problem := image_shape_problem(found):
            raise CelstackError(problem)
        if tuple(found) != image_shape:
            raise CelstackError(f"they are {tuple(found)} now, and were {image_shape}")
        _ = dataset.splits, dataset.max_objects  # these may need files, too
    # Code of other packages, without the files that it expects, may raise anything.
    except Exception as error:
        reason = _reason(error)
        if isinstance(table, dict) and "root" in table:
            reason += "; 'celstack evaluate RUN --data ROOT' takes them from another folder"
        return AbsentDataset(_use(table), image_shape, _splits(recipe), reason)
    return dataset


def _splits(recipe: Recipe) -> list[str]:
    """Return the splits that a run uses."""
    evaluation = recipe.table.get("evaluation")
    split = evaluation.get("split", "test") if isinstance(evaluation, dict) else "test"
    return ["train"] if split == "train" else ["train", str(split)]


def drop_absent_metrics(recipe: Recipe, known: Any, catalog: Catalog) -> dict[str, str]:
    """Remove metrics that cannot be built here from a recipe, in place.

    Args:
        recipe: The recipe of a run, perhaps with overrides.
        known: The metrics of the run itself. Others stay: they are mistakes of the user.
        catalog: The installed plugins.

    Returns:
        Why metrics were removed, by their names.
    """
    tables = recipe.table.get("metrics")
    reasons: dict[str, str] = {}
    if not isinstance(tables, list):
        return reasons
    kept = []
    for number, table in enumerate(tables):
        try:
            place = join("metrics", number)
            node = resolve_part(recipe.source, "metric", table, place, catalog)
            build_part(recipe.source, node, catalog)
        except RecipeError as error:
            if isinstance(known, list) and table in known:
                reasons[_use(table)] = _reason(error)
                continue
        kept.append(table)
    recipe.table["metrics"] = kept
    return reasons


def _use(table: Any) -> str:
    """Return the name of the plugin that the table of a part names."""
    return str(table.get("use") if isinstance(table, dict) else table)


def _reason(error: Exception) -> str:
    """Return what an error says, in one line."""
    if isinstance(error, RecipeError):
        return "; ".join(problem.text for problem in error.problems)
    return str(error) if isinstance(error, CelstackError) else describe_error(error)
