"""MSE: the squared error of reconstructions."""

from celstack import Batch, Metric, Rendering, Scene, hookimpl


class Mse(Metric):
    """Mean squared error, over all values of all images."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all images."""
        self.total, self.count = 0.0, 0

    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:  # noqa: ARG002
        """Add the errors of a batch."""
        errors = (rendering.image - batch.images).square().flatten(1).mean(1)
        # Not every device has doubles.
        self.total += errors.cpu().double().sum().item()
        self.count += len(batch)

    def compute(self) -> float:
        """Return the mean."""
        return self.total / self.count


@hookimpl
def celstack_metrics() -> dict[str, type[Mse]]:
    """Let recipes say ``metrics = ["mse"]``."""
    return {"mse": Mse}
