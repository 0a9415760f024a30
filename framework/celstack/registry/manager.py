"""A pluggy manager that knows Celstack's hooks."""

import pluggy

from celstack import hookspecs


def new_plugin_manager() -> pluggy.PluginManager:
    """Make a manager with no plugins in it."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    return manager
