"""Call the observers of a run, none of which can stop it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from pluggy import PluginValidationError

from celstack.errors import CelstackError
from celstack.interfaces.observer import Observer
from celstack.registry.manager import new_plugin_manager
from celstack.text import describe_error

LOG = logging.getLogger("celstack")


class CallbackList:
    """Calls the lifecycle hooks of observers, in the order of the recipe.

    Args:
        observers: Checked here: an unknown hook or argument raises CelstackError.
    """

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._manager = new_plugin_manager()
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
        for implementation in reversed(getattr(self._manager.hook, hook).get_hookimpls()):
            try:
                wanted = implementation.argnames
                implementation.function(*(arguments[name] for name in wanted))
            except Exception as error:
                self._manager.unregister(implementation.plugin)
                name = type(implementation.plugin).__name__
                text = (
                    f"observer {name} failed in {hook} and was dropped: {describe_error(error)}"
                )
                LOG.warning("%s", text)
