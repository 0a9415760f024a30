"""A transform whose name belongs to somebody else."""

from celstack import Transform, hookimpl


class Color(Transform):
    """Would make every recipe that uses color a different one."""

    num_params = 0

    def forward(self, images, params):
        """Return black."""
        return images * 0


@hookimpl
def celstack_transforms():
    """Provide it under every name."""
    return {"color": Color}
