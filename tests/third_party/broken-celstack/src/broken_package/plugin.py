"""A transform that nobody will ever see."""

from celstack import Transform, hookimpl


class BadPackage(Transform):
    """A good transform, in vain."""

    num_params = 0

    def forward(self, images, params):
        """Return the images themselves."""
        return images


@hookimpl
def celstack_transforms():
    """Provide it, if only one got here."""
    return {"bad_package": BadPackage}
