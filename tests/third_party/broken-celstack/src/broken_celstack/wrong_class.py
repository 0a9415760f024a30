"""A metric that is no metric."""

from celstack import hookimpl


class WrongClass:
    """Looks like a metric, but does not derive from it."""

    def compute(self):
        """Return the best of all numbers."""
        return 1.0


@hookimpl
def celstack_metrics():
    """Provide it all the same."""
    return {"wrong_class": WrongClass}
