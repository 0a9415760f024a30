"""A compositor under another name than its entry point's."""

from celstack import Compositor, hookimpl


@hookimpl
def celstack_compositors():
    """Provide what was not announced."""
    return {"some_other": Compositor}
