"""An encoder that is not finished."""

from celstack import Encoder, hookimpl


class Abstract(Encoder):
    """Lacks forward."""

    def prepare(self, image_shape):
        """Make nothing."""


@hookimpl
def celstack_encoders():
    """Provide it all the same."""
    return {"abstract": Abstract}
