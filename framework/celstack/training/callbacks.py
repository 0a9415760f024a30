"""The audience: observers of a run, none of which can stop it."""

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


class Audience:
    """Tells observers what happens, through the lifecycle hooks, in the recipe's order."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._manager = new_plugin_manager()
        # Pluggy calls the last to be registered first.
        for observer in reversed(list(observers)):
            try:
                self._manager.register(observer)
                self._manager.check_pending()
            except PluginValidationError as error:
                text = " ".join(str(error).split())
                raise CelstackError(f"observer {type(observer).__name__}: {text}") from error

    def tell(self, hook: str, **facts: Any) -> None:
        """Call a hook on every observer; one that raises is reported and leaves."""
        for heard in reversed(getattr(self._manager.hook, hook).get_hookimpls()):
            try:
                heard.function(*(facts[name] for name in heard.argnames))
            except Exception as error:
                self._manager.unregister(heard.plugin)
                name = type(heard.plugin).__name__
                text = (
                    f"observer {name} failed in {hook} and was dropped: {describe_error(error)}"
                )
                LOG.warning("%s", text)
