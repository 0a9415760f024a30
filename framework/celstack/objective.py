"""The place of ``Loss`` in 0.1.0, for plugins that were written then."""

from celstack.model.objective import Loss

__all__ = ["Loss"]
