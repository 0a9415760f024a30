"""Check that stages name existing transforms, in recipes and in assemblies made in Python."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from celstack.errors import Problem
from celstack.text import did_you_mean, format_value


def check_stage_transforms(
    stages: Iterable[tuple[str, Collection[str] | None]], known: Collection[str]
) -> list[Problem]:
    """Return a problem for each transform that a stage names and the recipe does not have.

    Without this check a misspelled name would silently leave the transform inactive.

    Args:
        stages: Each stage's key path, such as ``stages[0]``, and its ``transforms`` option.
        known: The names of all transforms of the recipe.
    """
    names = sorted(set(known))
    return [
        Problem(
            f"{place}.transforms[{index}]",
            f"the recipe has no transform {format_value(name)}{did_you_mean(name, names)} "
            f"(it has: {', '.join(names) or 'none'})",
        )
        for place, transforms in stages
        for index, name in enumerate(transforms or ())
        if name not in names
    ]
