"""Constructors that check their arguments against annotations, as recipes are checked."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

import attrs

from celstack.errors import CelstackError
from celstack.registry.coerce import CoercionError, coerce
from celstack.registry.signature import hints_of
from celstack.text import did_you_mean

Made = TypeVar("Made")


def checked(
    init: Callable[..., None],
    remember: Callable[[Any, dict[str, Any]], None] = lambda _made, _arguments: None,
) -> Callable[..., None]:
    """Wrap a constructor to check its arguments, with the messages of a recipe.

    Args:
        init: The constructor.
        remember: Called with the object and the checked arguments, before the constructor.
    """
    signature = inspect.signature(init)
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    open_ended = any(p.kind == p.VAR_KEYWORD for p in signature.parameters.values())
    single = {p.name for p in signature.parameters.values() if p.kind not in several}

    @functools.wraps(init)
    def check_and_call(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in single and not open_ended:
                known = [option for option in signature.parameters if option != "self"]
                takes = f"takes {', '.join(known) or 'no options'}{did_you_mean(name, known)}"
                raise CelstackError(f"{type(self).__name__}({name}=...): it {takes}")
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise CelstackError(f"{type(self).__name__}(...): {error}") from None
        hints = hints_of(init)
        for name in [name for name in bound.arguments if name in single and name in hints]:
            try:
                bound.arguments[name] = coerce(bound.arguments[name], hints[name])
            except CoercionError as error:
                where = f"{type(self).__name__}({name}{error.place}=...)"
                raise CelstackError(f"{where}: {error.text}") from None
        # Not where the constructor of a subclass, with arguments of its own, calls this one.
        if type(self).__init__ is check_and_call:
            remember(self, {name: bound.arguments[name] for name in list(bound.arguments)[1:]})
        init(*bound.args, **bound.kwargs)

    return check_and_call


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(attrs.field,))
def settings(cls: type[Made]) -> type[Made]:
    """Make a frozen attrs class with a checked constructor."""
    made = attrs.frozen(cls, kw_only=True)
    made.__init__ = checked(made.__init__)  # type: ignore[method-assign]
    return made
