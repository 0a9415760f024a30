"""Part: what all parts have in common."""

from __future__ import annotations

import re
from abc import ABC
from typing import TYPE_CHECKING, Any

from celstack.registry.validated import checked

if TYPE_CHECKING:
    from torch import Tensor


class Part(ABC):
    """A part of a run, chosen by name in a recipe or made in Python.

    Laws:
        The constructor is the schema: its keyword arguments are the part's options in a
        recipe, checked against their annotations in both places.
        A constructor stores and checks; what learns is made in ``prepare``, after the
        run's seed is set. So parts may be made in any order.
    """

    name: str
    """What recipes call it; made from the class's name where no recipe is involved."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        if "__init__" in cls.__dict__:
            cls.__init__ = checked(cls.__init__)  # type: ignore[method-assign]

    def upgrade_weights(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Convert weights, or moments of weights, that an earlier version has written.

        Called with a part's own weights by name before they are loaded. Return the argument
        itself where there is nothing to convert.
        """
        return weights
