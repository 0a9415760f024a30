"""Progress: a bar and the sprites in a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from rich.console import RenderableType
from rich.progress import MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

from celstack import (
    Decomposer,
    Finding,
    Loss,
    Observer,
    ScheduledStage,
    StatusConsole,
    hookimpl,
)
from celstack_kit.observers.progress.half_blocks import draw

PLAIN_LINES = 10
"""How many progress lines a run prints where there is no terminal."""
BAR_SECONDS, SPRITES_SECONDS = 0.1, 1.0
"""Intervals between updates of the bar, and of the sprites."""


class Bar(RichProgress):
    """A progress bar with pictures of the sprites below it."""

    sprites: Text | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the bar, then the sprites, if they are shown."""
        yield from super().get_renderables()
        if self.sprites is not None:
            yield self.sprites


class Progress(Observer):
    """Shows stage, step, loss, images per second and remaining time on standard error.

    In a terminal with true colors it also shows the sprites during training, unless
    ``sprites`` is false.
    """

    terminal = True

    def __init__(self, sprites: bool = True) -> None:
        self.sprites = sprites
        self.console = StatusConsole()
        self.title = ""

    @hookimpl
    def celstack_run_started(self, decomposer: Decomposer, steps: int, step: int) -> None:
        """Start the bar, at the step that the run is resumed from."""
        self.decomposer, self.steps, self.first = decomposer, steps, step
        self.began, self.images = time.monotonic(), 0
        self.findings: set[tuple[str, str]] = set()
        self.bar_due = self.sprites_due = self.began
        self.plain = self.console.plain
        true_color = self.console.color_system == "truecolor"
        unicode = self.console.encoding.startswith("utf")
        self.pictures = self.sprites and true_color and unicode and not self.plain
        self.bar = self.console.new_bar(
            Bar,
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("{task.fields[speed]} images/s"),
            TimeRemainingColumn(),
            disable=self.plain,
            # Drawing sprites takes a hundred times as long as a bar.
            refresh_per_second=1 if self.pictures else 10,
        )
        self.task = self.bar.add_task("", total=steps, completed=step, loss="-", speed="-")
        self.bar.start()
        if step:
            self._line(f"step {step} of {steps}: resumed")

    @hookimpl
    def celstack_phase_started(self, phase: ScheduledStage, step: int) -> None:
        """Show the name of the stage."""
        self.title = phase.title
        self.bar.update(self.task, description=self.title)
        if step == phase.start:
            self._line(f"step {step}: starting {self.title}")

    @hookimpl
    def celstack_step_finished(self, step: int, loss: Loss, images: int) -> None:
        """Advance the bar; the loss is read, which synchronizes, only when it is shown."""
        self.images += images
        now = time.monotonic()
        if self.plain:
            if step * PLAIN_LINES // self.steps > (step - 1) * PLAIN_LINES // self.steps:
                self._line(self._describe(step, float(loss.total), now))
            return
        if now >= self.bar_due or step == self.steps:
            self.bar_due = now + BAR_SECONDS
            text, speed = f"{float(loss.total):.5f}", f"{self._speed(now):,.0f}"
            self.bar.update(self.task, completed=step, loss=text, speed=speed)
        if now >= self.sprites_due or step == self.steps:
            self._show_sprites()

    @hookimpl
    def celstack_health_checked(self, step: int, findings: Sequence[Finding]) -> None:
        """Print a line for each kind of new findings."""
        kinds: dict[str, list[Finding]] = {}
        for finding in findings:
            if (finding.kind, finding.part) not in self.findings:
                self.findings.add((finding.kind, finding.part))
                kinds.setdefault(finding.kind, []).append(finding)
        for kind, new in kinds.items():
            more = f", and {len(new) - 1} more" if len(new) > 1 else ""
            text = f"step {step}: health: {new[0]}{more}; see 'celstack show health {kind}'"
            self.console.print_plain(text)

    @hookimpl
    def celstack_sprites_reassigned(self, step: int, sprites: list[int]) -> None:
        """Print which sprites were reassigned."""
        self._line(f"step {step}: reassigned sprites {', '.join(map(str, sprites))}")

    @hookimpl
    def celstack_validated(self, step: int, scores: Mapping[str, float]) -> None:
        """Print the scores of an evaluation during training."""
        self.celstack_evaluated(step, scores)

    @hookimpl
    def celstack_training_ended(self, step: int, reason: str) -> None:
        """Print why training has ended early."""
        self.console.print_plain(f"step {step}: training ended early: {reason}")

    @hookimpl
    def celstack_evaluated(self, step: int, scores: Mapping[str, float]) -> None:
        """Print the scores."""
        text = ", ".join(f"{name} {score:.4f}" for name, score in scores.items())
        if text:
            self._line(f"step {step}: {text}")

    @hookimpl
    def celstack_run_finished(self) -> None:
        """Stop the bar."""
        self.bar.stop()

    @hookimpl
    def celstack_run_stopped(self, step: int, reason: str) -> None:
        """Stop the bar, and print the reason."""
        self.bar.stop()
        self._line(f"step {step}: stopped: {reason}")

    def _speed(self, now: float) -> float:
        return self.images / max(now - self.began, 1e-6)

    def _describe(self, step: int, loss: float, now: float) -> str:
        seconds = (self.steps - step) * (now - self.began) / (step - self.first)
        left = timedelta(seconds=round(seconds))
        done = f"step {step} of {self.steps}: {self.title}, loss {loss:.5f}"
        return f"{done}, {self._speed(now):,.0f} images/s, {left} left"

    def _show_sprites(self) -> None:
        if self.pictures:
            # One row for the bar, one for the cursor.
            size = self.console.width, self.console.height - 2
            self.bar.sprites = draw(self.decomposer.sprites.images(), *size)
            # Counted from after drawing, so that slow drawing does not take all the time.
            self.sprites_due = time.monotonic() + SPRITES_SECONDS

    def _line(self, text: str) -> None:
        if self.plain:
            self.console.print_plain(text)


@hookimpl
def celstack_observers() -> dict[str, type[Progress]]:
    """Register ``observers = ["progress"]``."""
    return {"progress": Progress}
