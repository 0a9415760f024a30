"""Cosegmentation: how well the foreground that images share was segmented."""

from jaxtyping import Float
from torch import Tensor

from celstack import Batch, Rendering, Scene, hookimpl
from celstack.evaluation import PerImageMetric


class Cosegmentation(PerImageMetric):
    """Share of pixels correctly classified as foreground or background (paper, Sec. 4.2).

    A pixel is foreground where the visibilities of all layers add up to more than half.
    Foreground and background may be swapped, in all images or in none, whichever is better.
    """

    needs = ("instances",)
    percent = True

    def score_images(
        self,
        scene: Scene,  # noqa: ARG002
        rendering: Rendering,
        batch: Batch,
    ) -> Float[Tensor, " B"]:
        """Return the share of correct pixels of each image, before any swap."""
        assert batch.instances is not None
        right = (rendering.visible.sum(1) > 0.5) == (batch.instances > 0)
        # Not every device supports float64.
        return right.flatten(1).sum(1).cpu().double() / right[0].numel()

    @property
    def scores(self) -> list[float]:  # type: ignore[override]
        """The share of each image, after the swap if there is one."""
        if sum(self.image_scores) * 2 >= len(self.image_scores):
            return list(self.image_scores)
        return [1 - share for share in self.image_scores]


@hookimpl
def celstack_metrics() -> dict[str, type[Cosegmentation]]:
    """Provide ``metrics = ["cosegmentation"]`` for recipes."""
    return {"cosegmentation": Cosegmentation}
