"""MSE: the squared error of reconstructions."""

from celstack import Batch, Metric, Rendering, Scene, hookimpl


class Mse(Metric):
    """Mean squared error, over all values of all images."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all images."""
        self.scores: list[float] = []

    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:  # noqa: ARG002
        """Score each image of a batch."""
        errors = (rendering.image - batch.images).square().flatten(1).mean(1)
        self.scores += errors.tolist()

    def compute(self) -> float:
        """Return the mean over images."""
        return sum(self.scores) / len(self.scores)


@hookimpl
def celstack_metrics() -> dict[str, type[Mse]]:
    """Let recipes say ``metrics = ["mse"]``."""
    return {"mse": Mse}
