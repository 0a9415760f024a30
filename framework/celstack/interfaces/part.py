"""Part: the base class of everything that a recipe can choose by name."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from celstack.registry.signature import inspect_class
from celstack.registry.validated import checked

if TYPE_CHECKING:
    from torch import Tensor


ARGUMENTS = "_constructor_arguments"
"""The attribute in which a part keeps what it was constructed with."""
UNKNOWN: Any = object()
"""An argument of a constructor that is not known any more."""


class Part(ABC):
    """A component of a run, chosen by name in a recipe or constructed in Python.

    Laws:
        The constructor is the schema: its keyword arguments are the part's options in a
        recipe, validated against their annotations in recipes and in Python alike.
        A constructor only stores and validates. Learnable parameters are created in
        ``prepare``, after the run's seed is set, so parts may be constructed in any order.
    """

    name: str
    """The name in recipes; by default the class name in snake_case."""

    renamed: ClassVar[Mapping[str, str]] = {}
    """Old name to new name of methods that plugins override. A class that defines one of the
    two gets the other as well, so plugins written for an earlier version keep working."""

    needed: ClassVar[tuple[str, ...]] = ()
    """The attributes that a class of this kind, or its constructor, has to set."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for old, new in cls.renamed.items():
            for given, missing in ((old, new), (new, old)):
                if given in cls.__dict__ and missing not in cls.__dict__:
                    setattr(cls, missing, cls.__dict__[given])
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        if "__init__" in cls.__dict__:
            cls.__init__ = checked(cls.__init__, _remember)  # type: ignore[method-assign]

    def upgrade_weights(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Convert weights, or optimizer moments, that an earlier version has saved.

        Called before they are loaded.

        Args:
            weights: The part's own tensors, by their names within the part.

        Returns:
            The converted tensors; the argument itself where there is nothing to convert.
        """
        return weights


class _Arguments(dict[str, Any]):
    """Arguments of a constructor. Copies of a part share them, and pickles do without.

    They may be large, or impossible to copy, and only the recipe of a run needs them.
    """

    def __deepcopy__(self, _: object) -> _Arguments:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


def constructor_arguments(part: Part) -> dict[str, Any]:
    """Return the arguments that a part was constructed with, by name.

    Where they are not known, as for dataclasses and unpickled parts, these are the attributes
    of the names of all arguments; UNKNOWN for one that is not an attribute.
    """
    known: dict[str, Any] | None = part.__dict__.get(ARGUMENTS)
    if known is not None:
        return dict(known)
    names = inspect_class(type(part)).names()
    return {name: getattr(part, name, UNKNOWN) for name in names}


def _remember(part: Part, arguments: dict[str, Any]) -> None:
    part.__dict__[ARGUMENTS] = _Arguments(arguments)
