"""Signatures of constructors: the schema of a part's table in a recipe."""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from celstack.registry.kinds import KIND_OF_INTERFACE


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()
SETTINGS = ("Transforms", "Training", "Stage", "Evaluation", "Validation")
"""Classes of the core that recipes write as tables without ``use``."""


class Option(NamedTuple):
    """One keyword argument of a constructor."""

    name: str
    annotation: Any
    default: Any = REQUIRED


class Signature(NamedTuple):
    """The options of a constructor, and the docstring of its class."""

    options: tuple[Option, ...]
    doc: str

    def names(self) -> list[str]:
        """Return the names of the options."""
        return [option.name for option in self.options]


def inspect_class(part: type[Any]) -> Signature:
    """Return the signature of an imported class."""
    import inspect

    hints = hints_of(part.__init__)
    parameters = inspect.signature(part).parameters.values()
    options = (
        Option(p.name, hints.get(p.name, Any), REQUIRED if p.default is p.empty else p.default)
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    )
    return Signature(tuple(options), part.__doc__ or "")


def hints_of(init: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a constructor that can be evaluated."""
    try:
        return get_type_hints(init, include_extras=True)
    # Evaluate one by one: a name that is only imported for type checking fails alone.
    except Exception:
        while hasattr(init, "__wrapped__"):
            init = init.__wrapped__
    hints: dict[str, Any] = {}
    for name, annotation in _raw_annotations(init).items():
        alone = SimpleNamespace(__annotations__={name: annotation})
        try:
            hints |= get_type_hints(alone, globalns=init.__globals__, include_extras=True)
        except Exception:  # noqa: S112 - left out, as documented
            continue
    return hints


def _raw_annotations(init: Callable[..., Any]) -> dict[str, Any]:
    try:
        return init.__annotations__
    except NameError:  # since Python 3.14, access evaluates them
        return {}


def without_none(annotation: Any) -> Any:
    """Reduce ``X | None`` to X: in a recipe, None is a missing key."""
    if get_origin(annotation) in (Union, UnionType):
        inner = [choice for choice in get_args(annotation) if choice is not NoneType]
        if len(inner) == 1:
            return inner[0]
    return annotation


def kind_name(annotation: Any) -> str:
    """Return the kind of part that an annotation asks for; empty if it asks for none."""
    kind = KIND_OF_INTERFACE.get(getattr(annotation, "__name__", ""))
    return kind.name if kind else ""


def settings_name(annotation: Any) -> str:
    """Return the class of settings that an annotation asks for; empty if it asks for none."""
    name = getattr(annotation, "__name__", "")
    return name if name in SETTINGS else ""
