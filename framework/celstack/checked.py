"""Arguments are checked against annotations, in Python just as in a recipe."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform, get_args, get_type_hints

import attrs

from celstack.errors import CelstackError
from celstack.kinds import KIND_OF_INTERFACE
from celstack.options import SETTINGS
from celstack.values import Misfit, fit

Made = TypeVar("Made")


def checked(init: Callable[..., None]) -> Callable[..., None]:
    """Make a constructor refuse what a recipe would refuse, with the same words."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def check_and_call(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        hints = get_type_hints(init, include_extras=True)
        for name, value in list(bound.arguments.items())[1:]:
            if name in hints and _is_plain(hints[name]):
                try:
                    bound.arguments[name] = fit(value, hints[name])
                except Misfit as misfit:
                    where = f"{type(self).__name__}({name}{misfit.place}=...)"
                    raise CelstackError(f"{where}: {misfit.text}") from None
        init(*bound.args, **bound.kwargs)

    return check_and_call


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(attrs.field,))
def settings(cls: type[Made]) -> type[Made]:
    """Make a frozen attrs class whose arguments are checked."""
    made = attrs.frozen(cls, kw_only=True)
    made.__init__ = checked(made.__init__)  # type: ignore[method-assign]
    return made


def _is_plain(annotation: Any) -> bool:
    """Tell values from parts and settings, which have been checked when they were made."""
    names = {getattr(annotation, "__name__", "")}
    names |= {getattr(argument, "__name__", "") for argument in get_args(annotation)}
    return not names & {*KIND_OF_INTERFACE, *SETTINGS}
