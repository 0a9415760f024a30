"""Checks of single parts: attributes, preparation, and parameters that can learn."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial

import torch

from celstack.errors import CelstackError, Problem
from celstack.interfaces.part import Part
from celstack.interfaces.prototype import Prototype
from celstack.model.parameter_groups import find_untrainable
from celstack.model.transform_chain import TransformChain
from celstack.recipe.assembly import Assembly, Transforms
from celstack.text import describe_error


def check_attributes(assembly: Assembly) -> list[Problem]:
    """Find parts without an attribute that their kind has to have."""
    parts: dict[str, Part | None] = {
        "sprites": assembly.sprites,
        "backgrounds": assembly.backgrounds,
        "compositor": assembly.compositor,
        **_selectors(assembly),
    }
    return [
        Problem(place, f"{part.name} has no {name}; its class or constructor has to set it")
        for place, part in parts.items()
        if part is not None
        for name in part.needed
        if not hasattr(part, name)
    ]


def _selectors(assembly: Assembly) -> dict[str, Part]:
    """Return all selectors, and teachers, by their place."""
    selectors: dict[str, Part] = {"selector": assembly.selector}
    for index, stage in enumerate(assembly.stages):
        own = {"selector": stage.selector, "teacher": stage.teacher}
        found = {key: part for key, part in own.items() if part is not None}
        selectors |= {f"stages[{index}].{key}": part for key, part in found.items()}
    return selectors


def prepare_parts(assembly: Assembly) -> tuple[Transforms, list[Problem]]:
    """Return prepared copies of all transforms; what is wrong with them and the compositor."""
    copies = deepcopy(assembly.transforms)
    shape = channels, height, width = assembly.dataset.image_shape
    problems = []
    for kind in ("sprite", "layer", "background"):
        for index, transform in enumerate(getattr(copies, kind)):
            chain = TransformChain([transform])
            if text := _failure(transform, partial(chain.prepare, channels, (height, width))):
                problems.append(Problem(f"transforms.{kind}[{index}]", text))
    compositor = deepcopy(assembly.compositor)
    if text := _failure(compositor, partial(compositor.prepare, shape)):
        problems.append(Problem("compositor", text))
    return copies, problems


def _failure(part: Part, prepare: Callable[[], None]) -> str:
    """Prepare a part; return why that fails, or nothing."""
    try:
        prepare()
    except CelstackError as error:
        return str(error)
    # Any other exception of a plugin is reported as a mistake in the recipe, too.
    except Exception as error:
        return f"{part.name} fails in prepare: {describe_error(error)}"
    return ""


def can_learn(prototype: Prototype, image_shape: tuple[int, int, int]) -> bool:
    """Return whether a prototype for backgrounds has parameters that learn."""
    copy = deepcopy(prototype)
    with torch.random.fork_rng(devices=[]):
        # Where it fails, that is reported when training begins.
        if _failure(copy, partial(copy.allocate, image_shape, with_alpha=False)):
            return True
    return any(parameter.requires_grad for parameter in copy.parameters())


def check_parameters(assembly: Assembly) -> list[Problem]:
    """Find parameters that would never learn, as far as they exist before training."""
    try:
        model = assembly.decomposer()
        model.set_image_shape(assembly.dataset.image_shape)
    except CelstackError:
        return []  # a selector refuses the model, which is reported elsewhere
    found = find_untrainable(model, _selectors(assembly))
    return [Problem(place, text) for place, text in found]
