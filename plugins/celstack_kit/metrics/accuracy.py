"""Accuracy: how many images are in the right cluster."""

from celstack import Batch, Metric, Rendering, Scene, hookimpl
from celstack.evaluation import Confusion, clusters


class Accuracy(Metric):
    """Clustering accuracy of whole images (paper, Sec. 4.2).

    The sprite that shows most is the image's cluster, and images without any are a cluster
    too; clusters are matched with classes, each with at most one (Hungarian matching).
    """

    needs = ("label",)
    percent = True

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all images."""
        self.confusion = Confusion()

    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Count the images of a batch."""
        assert batch.label is not None
        self.confusion.add(batch.label, clusters(scene, rendering))

    def compute(self) -> float:
        """Return the share of images whose cluster is matched with their class."""
        hits, true, _ = self.confusion.match()
        return (hits.sum() / true.sum()).item()


@hookimpl
def celstack_metrics() -> dict[str, type[Accuracy]]:
    """Let recipes say ``metrics = ["accuracy"]``."""
    return {"accuracy": Accuracy}
