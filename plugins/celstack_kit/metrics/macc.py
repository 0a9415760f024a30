"""mAcc: how much of every class was found."""

from celstack import Batch, Metric, Rendering, Scene, hookimpl
from celstack.evaluation import Confusion


class Macc(Metric):
    """Mean accuracy of classes, background included (paper, supplementary A).

    One confusion matrix counts the pixels of all images; sprites are matched with classes
    once for all. Classes that are nowhere in the truth are left out of the mean.
    """

    needs = ("classes",)
    percent = True

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all pixels."""
        self.confusion = Confusion()

    def update(self, scene: Scene, rendering: Rendering, batch: Batch) -> None:
        """Count the pixels of a batch."""
        assert batch.classes is not None
        self.confusion.add(batch.classes, rendering.classes(scene))

    def compute(self) -> float:
        """Return the mean over classes of the share of their pixels that was found."""
        hits, true, _ = self.confusion.match()
        return (hits / true).mean().item()


@hookimpl
def celstack_metrics() -> dict[str, type[Macc]]:
    """Let recipes say ``metrics = ["macc"]``."""
    return {"macc": Macc}
