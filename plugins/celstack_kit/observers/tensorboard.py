"""TensorBoard: scalars, sprites and decompositions, for `tensorboard --logdir runs`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge

from celstack import Assembly, Decomposer, Observer, Scene, hookimpl
from celstack.evaluation import Usage, draw_examples, on_checkerboard
from celstack.model import Loss


class Tensorboard(Observer):
    """Writes scalars every ``every`` steps, and images every ``pictures_every`` steps.

    Scalars are the loss and its terms, learning rates, and each sprite's share of the
    non-empty layers since the last time. Images are sprites, their masks, backgrounds, and
    decompositions of held-out images. Scores are written at the end, and those of evaluations
    during training when there are any.
    """

    def __init__(
        self, every: Annotated[int, Ge(1)] = 10, pictures_every: Annotated[int, Ge(1)] = 500
    ) -> None:
        self.every, self.pictures_every = every, pictures_every

    @hookimpl
    def celstack_run_started(
        self, assembly: Assembly, decomposer: Decomposer, folder: Path | None, step: int
    ) -> None:
        """Open the event file; without a run folder nothing is written."""
        from torch.utils.tensorboard import SummaryWriter

        self.assembly, self.decomposer = assembly, decomposer
        self.usage = Usage(decomposer.sprites.count, next(decomposer.parameters()).device)
        self.writer = None
        if folder is None:
            return
        recipe = folder / "resolved.toml"
        has_text = not recipe.is_file() or any(folder.glob("events.out.tfevents.*"))
        # A resumed run writes the steps after its checkpoint again.
        self.writer = SummaryWriter(str(folder), purge_step=step + 1)
        if not has_text:
            text = recipe.read_text(encoding="utf-8")
            # Indented, Markdown shows it as code.
            self.writer.add_text("recipe", "".join(f"    {x}\n" for x in text.splitlines()))
            self.writer.flush()

    @hookimpl
    def celstack_step_finished(
        self, step: int, loss: Loss, scene: Scene, rates: Mapping[str, float]
    ) -> None:
        """Write scalars and images when they are due."""
        if not self.writer:
            return
        self.usage.add(scene.sprite)
        if step % self.every == 0:
            for name, value in loss.numbers().items():
                term = "total" if name == "loss" else name
                self.writer.add_scalar(f"loss/{term}", value, step)
            for name, rate in rates.items():
                self.writer.add_scalar(f"rate/{name}", rate, step)
            shares = self.usage.counts / self.usage.counts.sum().clamp_min(1)
            for number, share in enumerate(shares.tolist()):
                self.writer.add_scalar(f"usage/{number:02d}", share, step)
            self.usage.reset()
        if step % self.pictures_every == 0:
            self._draw(step)

    @hookimpl
    def celstack_checkpoint_saved(self) -> None:
        """Flush: a run resumed from this checkpoint does not write earlier steps again."""
        if self.writer and self._folder_exists():
            self.writer.flush()

    @hookimpl
    def celstack_validated(self, step: int, scores: Mapping[str, float]) -> None:
        """Write the scores of an evaluation during training."""
        if self.writer:
            for name, score in scores.items():
                self.writer.add_scalar(f"validation/{name}", score, step)

    @hookimpl
    def celstack_evaluated(self, step: int, scores: Mapping[str, float]) -> None:
        """Write scores, and images of the trained model."""
        if self.writer:
            for name, score in scores.items():
                self.writer.add_scalar(f"score/{name}", score, step)
            if step % self.pictures_every:
                self._draw(step)

    @hookimpl
    def celstack_run_finished(self) -> None:
        """Close the event file."""
        self._close()

    @hookimpl
    def celstack_run_stopped(self) -> None:
        """Close the event file."""
        self._close()

    def _draw(self, step: int) -> None:
        """Write images of the current model."""
        assert self.writer is not None
        with torch.no_grad():
            sprites = self.decomposer.sprites.images().cpu()
            self.writer.add_images("sprites", on_checkerboard(sprites), step)
            self.writer.add_images("masks", sprites[:, -1:].clamp(0, 1), step)
            if self.decomposer.backgrounds is not None:
                backgrounds = self.decomposer.backgrounds.images().cpu()[:, :-1]
                self.writer.add_images("backgrounds", backgrounds.clamp(0, 1), step)
            examples = np.array(draw_examples(self.decomposer, self.assembly).convert("RGB"))
        self.writer.add_image("examples", examples, step, dataformats="HWC")

    def _close(self) -> None:
        if self.writer and self._folder_exists():
            self.writer.close()

    def _folder_exists(self) -> bool:
        """Return whether the folder still exists; without it the writer's thread raises."""
        return self.writer is not None and Path(self.writer.log_dir).is_dir()


@hookimpl
def celstack_observers() -> dict[str, type[Tensorboard]]:
    """Register ``observers = ["tensorboard"]``."""
    return {"tensorboard": Tensorboard}
