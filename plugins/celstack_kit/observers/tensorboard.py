"""TensorBoard: curves and sprites, for `tensorboard --logdir runs`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from celstack import Decomposer, Observer, hookimpl
from celstack.objective import Loss
from celstack.pictures import on_checkerboard


class Tensorboard(Observer):
    """Writes the loss every so many steps, and scores and sprites when there are any."""

    def __init__(self, every: Annotated[int, Ge(1)] = 10) -> None:
        self.every = every

    @hookimpl
    def celstack_run_started(self, folder: Path | None) -> None:
        """Open the events file; a run without a folder has none."""
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder)) if folder else None

    @hookimpl
    def celstack_step_finished(self, step: int, loss: Loss) -> None:
        """Write the loss and its terms."""
        if self.writer and step % self.every == 0:
            self.writer.add_scalar("loss/total", float(loss.total), step)
            self.writer.add_scalar("loss/reconstruction", float(loss.reconstruction), step)

    @hookimpl
    def celstack_evaluated(
        self, step: int, scores: Mapping[str, float], decomposer: Decomposer
    ) -> None:
        """Write scores and sprites."""
        if self.writer:
            for name, score in scores.items():
                self.writer.add_scalar(f"score/{name}", score, step)
            sprites = on_checkerboard(decomposer.sprites.images().detach().cpu())
            self.writer.add_images("sprites", sprites, step)

    @hookimpl
    def celstack_run_finished(self) -> None:
        """Close the file."""
        self._close()

    @hookimpl
    def celstack_run_stopped(self) -> None:
        """Close the file."""
        self._close()

    def _close(self) -> None:
        if self.writer:
            self.writer.close()


@hookimpl
def celstack_observers() -> dict[str, type[Tensorboard]]:
    """Let recipes say ``observers = ["tensorboard"]``."""
    return {"tensorboard": Tensorboard}
