"""Parameter groups: everything in a model that learns, by name, and at which rate."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
from torch import nn

from celstack.interfaces.encoder import Encoder
from celstack.interfaces.part import ARGUMENTS, Part
from celstack.interfaces.transform import Transform
from celstack.model.decomposer import Decomposer
from celstack.text import format_value

RATED_BY_RECIPE = ("prototypes", "encoder", "heads")
"""Groups whose learning rates are in ``[training]`` of the recipe."""
MAX_NESTING = 3
"""How deep lists in lists are searched for parameters."""


@attrs.frozen(eq=False)
class ParameterGroup:
    """Parameters that learn at one rate."""

    parameters: list[nn.Parameter]
    rate: float | None = None
    """The learning rate that the part states; None if ``[training]`` of the recipe does."""
    network: bool = True
    """Whether ``weight_decay`` and ``network_factor`` apply; for prototypes neither does."""


def parameter_groups(decomposer: Decomposer) -> dict[str, ParameterGroup]:
    """Return all parameters of a model in groups; those without parameters are left out.

    The groups are ``prototypes``, ``encoder`` and ``heads``, whose rates are in the recipe;
    then one for each transform that has parameters of its own, called after its place in the
    recipe, such as ``transforms.layer[0]``, and ``compositor``. These parts state their rate.
    """
    prototypes = [*decomposer.sprites.parameters()]
    if decomposer.backgrounds is not None:
        prototypes += decomposer.backgrounds.parameters()
    encoder, heads = _networks(decomposer)
    groups = {
        "prototypes": ParameterGroup(prototypes, network=False),
        "encoder": ParameterGroup(encoder),
        "heads": ParameterGroup(heads),
    }
    seen: set[int] = set()
    for place, transform in _transforms(decomposer).items():
        # The same transform may be in a chain twice.
        own = [] if id(transform) in seen else [*transform.parameters()]
        groups[place] = ParameterGroup(own, transform.learning_rate)
        seen.add(id(transform))
    compositor = decomposer.compositor
    if isinstance(compositor, nn.Module):
        own = [*compositor.parameters()]
        groups["compositor"] = ParameterGroup(own, compositor.learning_rate)
    return {name: group for name, group in groups.items() if group.parameters}


@contextmanager
def stated_groups_frozen(decomposer: Decomposer) -> Iterator[None]:
    """Let no gradient reach the parameters of transforms and of the compositor."""
    groups = parameter_groups(decomposer).values()
    stated = (p for group in groups if group.rate is not None for p in group.parameters)
    frozen = [parameter for parameter in stated if parameter.requires_grad]
    try:
        for parameter in frozen:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in frozen:
            parameter.requires_grad_(True)


def find_untrainable(
    decomposer: Decomposer, selectors: dict[str, Part]
) -> Iterator[tuple[str, str]]:
    """Find parameters that would never learn: in no group, or in one without a valid rate.

    Args:
        decomposer: The model; parts that are not prepared yet have no parameters.
        selectors: All selectors of a run, by their place in the recipe.

    Yields:
        The place of each part that has such parameters, and what to do about them.
    """
    groups = parameter_groups(decomposer)
    for place, group in groups.items():
        if place not in RATED_BY_RECIPE and not _is_rate(group.rate):
            yield place, f"learning_rate is {format_value(group.rate)}; it must be more than 0"
    grouped = {id(p) for group in groups.values() for p in group.parameters}
    for place, selector in selectors.items():
        if names := _outside(selector, grouped):
            text = "but selectors do not learn; a transform, compositor, prototype or predictor"
            remedy = "can have them, or requires_grad_(False) if they are not to learn"
            yield place, f"has parameters in {names}, {text} {remedy}"
    parts: dict[str, Part | None] = {
        "sprites": decomposer.sprites,
        "backgrounds": decomposer.backgrounds,
        **_transforms(decomposer),
        "compositor": decomposer.compositor,
        "predictor": decomposer.predictor,
    }
    for place, part in parts.items():
        if names := _outside(part, grouped):
            text = "where they would never learn; derive the class from nn.Module, and keep"
            yield place, f"has parameters in {names}, {text} lists in an nn.ModuleList"


def _is_rate(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf


def _transforms(decomposer: Decomposer) -> dict[str, Transform]:
    """Return all transforms by their place in the recipe."""
    chains = {
        "sprite": decomposer.sprite_chain,
        "layer": decomposer.layer_chain,
        "background": decomposer.background_chain,
    }
    return {
        f"transforms.{kind}[{index}]": transform
        for kind, chain in chains.items()
        for index, transform in enumerate(chain)
    }


def _networks(decomposer: Decomposer) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return the parameters of encoders, and all others of the predictor."""
    if decomposer.predictor is None:
        return [], []
    encoders = [part for part in decomposer.predictor.modules() if isinstance(part, Encoder)]
    encoder = dict.fromkeys(p for part in encoders for p in part.parameters())
    heads = [p for p in decomposer.predictor.parameters() if p not in encoder]
    return list(encoder), heads


def _outside(part: Part | None, grouped: Collection[int]) -> str:
    """Name the attributes of a part with parameters that are in no group."""
    modules = part.modules() if isinstance(part, nn.Module) else [part]
    attributes: list[tuple[str, Any]] = []
    for module in modules:
        own = dict(vars(module)) if module is not None else {}
        attributes += own.pop("_parameters", {}).items()
        own.pop("_modules", None)  # visited as modules
        own.pop(ARGUMENTS, None)  # not copied with the part: other parameters than its own
        attributes += own.items()
    found = (name for name, value in attributes for p in _inside(value) if id(p) not in grouped)
    return ", ".join(dict.fromkeys(found))


def _inside(value: Any, nesting: int = 0) -> Iterator[nn.Parameter]:
    """Yield the parameters in an attribute that learn: those that require gradients."""
    inner: Iterable[Any] = ()
    if isinstance(value, nn.Parameter):
        yield from [value] if value.requires_grad else []
    elif isinstance(value, nn.Module):
        inner = value.parameters()
    elif isinstance(value, list | tuple | set):
        inner = value
    elif isinstance(value, dict):
        inner = value.values()
    if nesting < MAX_NESTING:
        for item in inner:
            yield from _inside(item, nesting + 1)
