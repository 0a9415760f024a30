"""A transform behind a hook that nobody calls."""

from celstack import Transform, hookimpl


class Misspelt(Transform):
    """A good transform, in vain."""

    num_params = 0

    def forward(self, images, params):
        """Return the images themselves."""
        return images


@hookimpl
def celstack_transfroms():
    """Provide it where nobody looks."""
    return {"misspelt": Misspelt}
