"""Identity: leave sprites unchanged."""

from jaxtyping import Float
from torch import Tensor

from celstack import BrowserCode, Transform, hookimpl


class Identity(Transform):
    """The transform without parameters or effect."""

    num_params = 0

    def forward(
        self,
        images: Float[Tensor, "n D h w"],
        params: Float[Tensor, "n 0"],  # noqa: ARG002
    ) -> Float[Tensor, "n D h w"]:
        """Return the images."""
        return images

    def browser(self) -> BrowserCode:
        """Return the JavaScript version, identity.js."""
        return BrowserCode.beside(__file__)


@hookimpl
def celstack_transforms() -> dict[str, type[Identity]]:
    """Let recipes say ``use = "identity"``."""
    return {"identity": Identity}
