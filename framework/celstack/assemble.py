"""Resolved recipe to assembly: the only place that builds parts."""

from __future__ import annotations

from typing import Any

from celstack import assembly
from celstack.assembly import Assembly
from celstack.catalog import BrokenPluginError, Catalog
from celstack.errors import CelstackError, Problem, RecipeError, one_line
from celstack.interfaces.transform import Warp
from celstack.resolved import Node, ResolvedRecipe


def assemble(resolved: ResolvedRecipe, catalog: Catalog) -> Assembly:
    """Load the plugins a recipe names, build its parts, check that they make sense together."""
    problems: list[Problem] = []
    built = _build(resolved.root, catalog, problems)
    if not problems:
        problems += check_sense(built)
    if problems:
        raise RecipeError(resolved.source, problems)
    made: Assembly = built
    return made


def _build(value: Any, catalog: Catalog, problems: list[Problem]) -> Any:
    if isinstance(value, list):
        return [_build(item, catalog, problems) for item in value]
    if not isinstance(value, Node):
        return value
    before = len(problems)
    options = {
        name: _build(option, catalog, problems) for name, option in value.options.items()
    }
    if len(problems) > before:
        return None
    try:
        if not value.use:
            return getattr(assembly, value.kind)(**options)
        part = catalog.load(value.kind, value.use)(**options)
        part.name = value.use
        return part
    except BrokenPluginError as error:
        problems.append(Problem(f"{value.place}.use", str(error)))
    except CelstackError as error:
        problems.append(Problem(value.place, str(error)))
    # A constructor that objects in another way objects to what the recipe says, too.
    except Exception as error:
        problems.append(Problem(value.place, one_line(error)))
    return None


def check_sense(assembly: Assembly) -> list[Problem]:
    """Find what every part accepts and the whole cannot mean."""
    problems: list[Problem] = []
    if not assembly.stages:
        problems.append(Problem("stages", "there must be at least one, with steps or epochs"))
    layers, most = assembly.compositor.layers, assembly.dataset.most_objects
    if most is not None and layers < most:
        text = f"{layers} cannot hold the {most} objects that {assembly.dataset.name} may show"
        problems.append(Problem("compositor.layers", text))
    size = getattr(assembly.sprites, "size", None)
    warps = [
        t
        for t in (*assembly.transforms.sprite, *assembly.transforms.layer)
        if isinstance(t, Warp)
    ]
    canvas = assembly.dataset.image_shape[1:]
    if size is not None and not warps and (size[0] < canvas[0] or size[1] < canvas[1]):
        text = (
            f"{list(size)} is smaller than the canvas {list(canvas)} and nothing places it; "
            "add a transform that moves it, such as a position"
        )
        problems.append(Problem("sprites.size", text))
    splits = assembly.dataset.splits
    text = f"{assembly.dataset.name} has only the splits {', '.join(splits)}"
    if assembly.evaluation.split not in splits:
        problems.append(Problem("evaluation.split", text))
    if "train" not in splits:
        problems.append(Problem("dataset", f"{text}, and learning needs one called train"))
    return problems
