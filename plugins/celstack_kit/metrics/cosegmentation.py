"""Cosegmentation: how well the foreground that images share was cut out."""

from celstack import Batch, Metric, Rendering, Scene, hookimpl


class Cosegmentation(Metric):
    """Share of pixels rightly told to be foreground or background (paper, Sec. 4.2).

    A pixel is foreground where all layers together show more than half. Foreground and
    background may be swapped, in all images or in none, whichever is better.
    """

    needs = ("instances",)
    percent = True

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all images."""
        self.unswapped: list[float] = []

    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:  # noqa: ARG002
        """Score each image of a batch, as long as nothing is swapped."""
        assert batch.instances is not None
        right = (rendering.visible.sum(1) > 0.5) == (batch.instances > 0)
        # Not every device has doubles.
        share = right.flatten(1).sum(1).cpu().double() / right[0].numel()
        self.unswapped += share.tolist()

    @property
    def scores(self) -> list[float]:  # type: ignore[override]
        """The share of each image, after the swap if there is one."""
        if sum(self.unswapped) * 2 >= len(self.unswapped):
            return list(self.unswapped)
        return [1 - share for share in self.unswapped]

    def compute(self) -> float:
        """Return the mean over images."""
        return sum(self.scores) / len(self.scores)


@hookimpl
def celstack_metrics() -> dict[str, type[Cosegmentation]]:
    """Let recipes say ``metrics = ["cosegmentation"]``."""
    return {"cosegmentation": Cosegmentation}
