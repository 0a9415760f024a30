"""mIoU: mean intersection over union of classes."""

from celstack import hookimpl
from celstack.evaluation import ConfusionMetric


class Miou(ConfusionMetric):
    """Mean intersection over union of classes, background included (paper, supplementary A).

    Pixels are counted and sprites are matched with classes as for ``macc``.
    """

    needs = ("classes",)

    def compute(self) -> float:
        """Return the mean over classes of intersection over union."""
        hits, true, predicted = self.confusion.match()
        return (hits / (true + predicted - hits)).mean().item()


@hookimpl
def celstack_metrics() -> dict[str, type[Miou]]:
    """Provide ``metrics = ["miou"]`` for recipes."""
    return {"miou": Miou}
