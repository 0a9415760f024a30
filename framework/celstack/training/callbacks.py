"""Call the observers of a run; one that fails costs only itself."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

from pluggy import HookImpl, PluginValidationError

from celstack.errors import CelstackError, StopTraining
from celstack.interfaces.observer import Observer
from celstack.registry.manager import new_plugin_manager
from celstack.runs.validated import Validated
from celstack.text import describe_error, format_value

LOG = logging.getLogger("celstack")


class CallbackList:
    """Calls the lifecycle hooks of observers, in the order of the recipe.

    Args:
        observers: Checked here: an unknown hook or argument raises CelstackError.
    """

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._manager = new_plugin_manager()
        self.stop_reason = ""
        """Why an observer wants training to end; empty if none does."""
        # Pluggy calls plugins in the reverse order of their registration.
        for observer in reversed(list(observers)):
            try:
                self._manager.register(observer)
                self._manager.check_pending()
            except PluginValidationError as error:
                text = " ".join(str(error).split())
                raise CelstackError(f"observer {type(observer).__name__}: {text}") from error

    def notify(self, hook: str, **arguments: Any) -> None:
        """Call a hook on every observer; one that raises is reported and removed.

        Args:
            hook: The name of a lifecycle hook of ``celstack.hookspecs``.
            **arguments: All arguments of the hook; observers get those that they declare.
        """
        for implementation in self._implementations(hook):
            with self._dropping(implementation, hook):
                _call(implementation, arguments)

    def learning_rates(
        self, step: int, rates: Mapping[str, float], validations: Sequence[Validated]
    ) -> dict[str, float]:
        """Return the learning rates of a step, as one observer after the other changes them."""
        hook, changed = "celstack_step_started", dict(rates)
        for implementation in self._implementations(hook):
            arguments = {"step": step, "rates": dict(changed), "validations": [*validations]}
            with self._dropping(implementation, hook):
                changed |= checked_rates(_call(implementation, arguments), changed)
        return changed

    def _implementations(self, hook: str) -> Iterable[HookImpl]:
        return reversed(getattr(self._manager.hook, hook).get_hookimpls())

    @contextmanager
    def _dropping(self, implementation: HookImpl, hook: str) -> Iterator[None]:
        """Report and remove an observer that raises; note it if it asks to stop."""
        try:
            yield
        except StopTraining as request:
            name = type(implementation.plugin).__name__
            reason = " ".join(str(request).split()) or f"observer {name} gave no reason"
            self.stop_reason = self.stop_reason or reason
        except Exception as error:
            self._manager.unregister(implementation.plugin)
            name = type(implementation.plugin).__name__
            text = f"observer {name} failed in {hook} and was dropped: {describe_error(error)}"
            LOG.warning("%s", text)


def checked_rates(given: Any, known: Mapping[str, float]) -> dict[str, float]:
    """Return the rates that an observer gave; raise ValueError if they are no rates."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"rates are a mapping or None, not {format_value(given)}")
    for name, rate in given.items():
        if name not in known:
            groups = ", ".join(known)
            raise ValueError(f"there is no group {format_value(name)}, but {groups}")
        if not _is_number(rate) or not 0 <= rate < math.inf:
            raise ValueError(f"{name}: a rate is 0 or more, not {format_value(rate)}")
    return {name: float(rate) for name, rate in given.items()}


def _is_number(value: Any) -> bool:
    # Real numbers include those of numpy.
    return isinstance(value, Real) and not isinstance(value, bool)


def _call(implementation: HookImpl, arguments: Mapping[str, Any]) -> Any:
    return implementation.function(*(arguments[name] for name in implementation.argnames))
