"""Accuracy: how many images are in the right cluster."""

from celstack import hookimpl
from celstack.evaluation import ConfusionMetric


class Accuracy(ConfusionMetric):
    """Clustering accuracy of whole images (paper, Sec. 4.2).

    An image's cluster is the sprite with the largest visible area; images without sprites are
    a cluster, too. Clusters are matched one-to-one with classes (Hungarian matching).
    """

    needs = ("label",)

    def compute(self) -> float:
        """Return the share of images whose cluster is matched with their class."""
        hits, true, _ = self.confusion.match()
        return (hits.sum() / true.sum()).item()


@hookimpl
def celstack_metrics() -> dict[str, type[Accuracy]]:
    """Provide ``metrics = ["accuracy"]`` for recipes."""
    return {"accuracy": Accuracy}
