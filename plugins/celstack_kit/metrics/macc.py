"""mAcc: mean accuracy of classes."""

from celstack import hookimpl
from celstack.evaluation import ConfusionMetric


class Macc(ConfusionMetric):
    """Mean accuracy of classes, background included (paper, supplementary A).

    One confusion table counts the pixels of all images, and sprites are matched with classes
    once for all images. Classes that never occur in the truth are left out of the mean.
    """

    needs = ("classes",)

    def compute(self) -> float:
        """Return the mean over classes of the share of their pixels that was found."""
        hits, true, _ = self.confusion.match()
        return (hits / true).mean().item()


@hookimpl
def celstack_metrics() -> dict[str, type[Macc]]:
    """Provide ``metrics = ["macc"]`` for recipes."""
    return {"macc": Macc}
