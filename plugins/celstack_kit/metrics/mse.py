"""MSE: mean squared error of reconstructions."""

from jaxtyping import Float
from torch import Tensor

from celstack import Batch, Rendering, Scene, hookimpl
from celstack.evaluation import PerImageMetric


class Mse(PerImageMetric):
    """Mean squared error, over all values of all images."""

    def score_images(
        self,
        scene: Scene,  # noqa: ARG002
        rendering: Rendering,
        batch: Batch,
    ) -> Float[Tensor, " B"]:
        """Return the mean squared error of each image."""
        return (rendering.image - batch.images).square().flatten(1).mean(1)


@hookimpl
def celstack_metrics() -> dict[str, type[Mse]]:
    """Provide ``metrics = ["mse"]`` for recipes."""
    return {"mse": Mse}
