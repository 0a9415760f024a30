"""Consistency: options that are valid one by one, but not together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from celstack.data.batch_checks import image_shape_problem
from celstack.errors import CelstackError, Problem, RecipeError
from celstack.interfaces.dataset import Dataset
from celstack.interfaces.selector import Selector
from celstack.interfaces.transform import Transform, Warp
from celstack.recipe.assembly import Assembly, Stage, Transforms
from celstack.recipe.part_checks import (
    can_learn,
    check_attributes,
    check_parameters,
    prepare_parts,
)
from celstack.recipe.stage_transforms import check_stage_transforms
from celstack.text import describe_error, did_you_mean, format_value


def require_consistent(assembly: Assembly) -> None:
    """Raise RecipeError if the parts of an assembly do not work together."""
    problems = check_consistency(assembly)
    if problems:
        raise RecipeError("assembly", problems)


def check_consistency(assembly: Assembly) -> list[Problem]:
    """Return all inconsistencies, each with its path in a recipe."""
    missing = check_attributes(assembly)
    if missing:
        return missing  # faults of plugins, with which nothing else can be checked
    problems = _check_stages(assembly)
    if text := _image_shape_problem(assembly.dataset):
        return [*problems, Problem("dataset", text)]  # the others depend on the shape
    prepared, faults = prepare_parts(assembly)
    problems += faults
    # Other checks need the number of parameters, which may be known only after prepare.
    if not faults:
        problems += _check_leftovers(assembly, prepared)
        problems += _check_selectors(assembly)
        problems += _check_teachers(assembly, prepared)
        problems += check_parameters(assembly)
    return [*problems, *_check_sizes(assembly), *_check_splits(assembly)]


def _image_shape_problem(dataset: Dataset) -> str:
    try:
        return image_shape_problem(dataset.image_shape)
    except CelstackError as error:
        return str(error)
    # Any other exception of a plugin is reported as a mistake in the recipe, too.
    except Exception as error:
        return f"its image_shape is unknown: {describe_error(error)}"


def _check_stages(assembly: Assembly) -> list[Problem]:
    if not assembly.stages:
        return [Problem("stages", "there must be at least one, with steps or epochs")]
    chains = assembly.transforms
    known = {t.name for t in (*chains.sprite, *chains.layer, *chains.background)}
    stages = enumerate(assembly.stages)
    named = ((f"stages[{index}]", stage.transforms) for index, stage in stages)
    return check_stage_transforms(named, known)


def _check_leftovers(assembly: Assembly, prepared: Transforms) -> list[Problem]:
    """Find options that would have no effect."""
    problems = []
    if assembly.transforms.background and assembly.backgrounds is None:
        text = "there are no backgrounds to transform; add [backgrounds]"
        problems.append(Problem("transforms.background", text))
    if assembly.training.precision != "32" and assembly.predictor is None:
        text = "there is no predictor, and so no encoder to compute in other than 32 bits"
        problems.append(Problem("training.precision", text))
    names = [metric.name for metric in assembly.metrics]
    wanted = assembly.validation.stop_on
    if wanted and not assembly.validation.every:
        text = "nothing is evaluated during training; set validation.every"
        problems.append(Problem("validation.stop_on", text))
    elif wanted and wanted not in names:
        text = f"no metric of the recipe is called {format_value(wanted)}"
        text += did_you_mean(wanted, names)
        problems.append(Problem("validation.stop_on", text))
    for index, name in enumerate(names):
        if name in names[:index]:
            problems.append(Problem(f"metrics[{index}]", f"{name} is there already"))
    for index, stage in enumerate(assembly.stages):
        if stage.freeze_sprites and not _learns_without_sprites(assembly, prepared, stage):
            text = "sprites are frozen, and there is nothing else that could learn"
            problems.append(Problem(f"stages[{index}]", text))
    return problems


def _learns_without_sprites(assembly: Assembly, prepared: Transforms, stage: Stage) -> bool:
    backgrounds = assembly.backgrounds
    chains = [*prepared.sprite, *prepared.layer]
    if backgrounds is not None:
        chains += prepared.background
    active = _active(chains, stage)
    if any(p.requires_grad for transform in active for p in transform.parameters()):
        return True
    if assembly.predictor is not None and _have_params(chains, stage):
        return True
    return backgrounds is not None and can_learn(backgrounds, assembly.dataset.image_shape)


def _can_be_taught(assembly: Assembly, prepared: Transforms, stage: Stage) -> bool:
    everything = (*prepared.sprite, *prepared.layer, *prepared.background)
    return bool(assembly.compositor.num_logits) or _have_params(everything, stage)


def _have_params(transforms: Iterable[Transform], stage: Stage) -> bool:
    """Return whether any transform that a stage uses has parameters."""
    return any(transform.num_params for transform in _active(transforms, stage))


def _active(transforms: Iterable[Transform], stage: Stage) -> list[Transform]:
    return [t for t in transforms if stage.transforms is None or t.name in stage.transforms]


def _check_sizes(assembly: Assembly) -> list[Problem]:
    problems = []
    layers, most = assembly.compositor.layers, assembly.dataset.max_objects
    if most is not None and layers < most:
        text = f"{layers} cannot hold the {most} objects that {assembly.dataset.name} may show"
        problems.append(Problem("compositor.layers", text))
    size = assembly.sprites.size
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


def _check_selectors(assembly: Assembly) -> list[Problem]:
    asked = {"selector": assembly.selector}
    for index, stage in enumerate(assembly.stages):
        if stage.selector is not None:
            asked[f"stages[{index}].selector"] = stage.selector
    refusals = {place: _refusal(assembly, selector) for place, selector in asked.items()}
    return [Problem(place, text) for place, text in refusals.items() if text]


def _check_teachers(assembly: Assembly, prepared: Transforms) -> list[Problem]:
    """Find teachers without a predictor to train, or that need that very predictor."""
    stages = assembly.stages
    taught = [index for index, stage in enumerate(stages) if stage.teacher is not None]
    if not taught:
        return []
    alone = _with(assembly, predictor=None)
    problems = []
    for index in taught:
        teacher = stages[index].teacher
        assert teacher is not None
        text = _refusal(assembly, teacher)
        if assembly.predictor is None:
            text = "there is no predictor to teach; add a [predictor]"
        elif not text and _refusal(alone, teacher):
            text = f"{teacher.name} needs the very predictor that it would teach; take another"
        elif not text and not _can_be_taught(assembly, prepared, stages[index]):
            text = "the stage uses no transform with parameters, so there is nothing to teach"
        if text:
            problems.append(Problem(f"stages[{index}].teacher", text))
    last = stages[-1].selector or assembly.selector
    if assembly.predictor is not None and not _refusal(alone, last):
        text = f"{last.name} does not ask the predictor, which would have been taught in vain"
        place = (
            "selector" if stages[-1].selector is None else f"stages[{len(stages) - 1}].selector"
        )
        problems.append(Problem(place, f"{text}; end with a selector that does"))
    return problems


def _refusal(assembly: Assembly, selector: Selector) -> str:
    """Return why a selector cannot work with the other parts; empty if it can."""
    try:
        model = _with(assembly, selector=selector).decomposer()
        model.set_image_shape(assembly.dataset.image_shape)
    except CelstackError as error:
        return str(error)
    return ""


def _with(assembly: Assembly, **parts: Any) -> Assembly:
    """Return the same assembly with some other parts."""
    made: Any = assembly  # mypy does not know that settings are attrs classes
    return attrs.evolve(made, **parts)


def _check_splits(assembly: Assembly) -> list[Problem]:
    problems = []
    splits = assembly.dataset.splits
    text = f"{assembly.dataset.name} has only the splits {', '.join(splits)}"
    if assembly.evaluation.split not in splits:
        problems.append(Problem("evaluation.split", text))
    if assembly.validation.every and assembly.validation.split not in splits:
        problems.append(Problem("validation.split", text))
    if "train" not in splits:
        problems.append(Problem("dataset", f"{text}, and learning needs one called train"))
    return problems
