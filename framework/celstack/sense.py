"""Sense: what every part accepts and the whole cannot mean."""

from __future__ import annotations

from celstack.assembly import Assembly
from celstack.errors import CelstackError, Problem, RecipeError, did_you_mean, shown
from celstack.interfaces.transform import Warp


def demand_sense(assembly: Assembly) -> None:
    """Raise RecipeError if an assembly made in Python cannot mean anything."""
    problems = check_sense(assembly)
    if problems:
        raise RecipeError("assembly", problems)


def check_sense(assembly: Assembly) -> list[Problem]:
    """Find everything that does not make sense, with its place in a recipe."""
    return [
        *_check_stages(assembly),
        *_check_sizes(assembly),
        *_check_selector(assembly),
        *_check_splits(assembly),
    ]


def _check_stages(assembly: Assembly) -> list[Problem]:
    if not assembly.stages:
        return [Problem("stages", "there must be at least one, with steps or epochs")]
    chains = assembly.transforms
    known = {t.name for t in (*chains.sprite, *chains.layer, *chains.background)}
    return [
        Problem(
            f"stages[{index}].transforms",
            f"there is no transform {shown(name)}{did_you_mean(name, known)}",
        )
        for index, stage in enumerate(assembly.stages)
        for name in stage.transforms or ()
        if name not in known
    ]


def _check_sizes(assembly: Assembly) -> list[Problem]:
    problems = []
    layers, most = assembly.compositor.layers, assembly.dataset.most_objects
    if most is not None and layers < most:
        text = f"{layers} cannot hold the {most} objects that {assembly.dataset.name} may show"
        problems.append(Problem("compositor.layers", text))
    size = getattr(assembly.sprites, "size", None)
    movers = (*assembly.transforms.sprite, *assembly.transforms.layer)
    canvas = assembly.dataset.image_shape[1:]
    placed = any(isinstance(transform, Warp) for transform in movers)
    if size is not None and not placed and (size[0] < canvas[0] or size[1] < canvas[1]):
        text = (
            f"{list(size)} is smaller than the canvas {list(canvas)} and nothing places it; "
            "add a transform that moves it, such as a position"
        )
        problems.append(Problem("sprites.size", text))
    return problems


def _check_selector(assembly: Assembly) -> list[Problem]:
    try:
        assembly.decomposer()
    except CelstackError as error:
        return [Problem("selector", str(error))]
    return []


def _check_splits(assembly: Assembly) -> list[Problem]:
    problems = []
    splits = assembly.dataset.splits
    text = f"{assembly.dataset.name} has only the splits {', '.join(splits)}"
    if assembly.evaluation.split not in splits:
        problems.append(Problem("evaluation.split", text))
    if "train" not in splits:
        problems.append(Problem("dataset", f"{text}, and learning needs one called train"))
    return problems
