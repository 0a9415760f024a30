"""Progress: a bar and the sprites in the terminal, plain lines where nothing can move."""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as RichProgress,
)
from rich.text import Text

from celstack import Decomposer, Finding, Observer, Phase, hookimpl
from celstack.model import Loss
from celstack_kit.observers.progress.half_blocks import draw

LINES = 10
"""How many plain lines a run gets, apart from its beginning and end."""
BAR_EVERY, SPRITES_EVERY = 0.1, 1.0
"""Seconds between two looks at the loss, and at the sprites."""


class Bar(RichProgress):
    """A bar with the sprites below it."""

    sprites: Text | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """Show the bar, then the sprites, if there is a picture of them."""
        yield from super().get_renderables()
        if self.sprites is not None:
            yield self.sprites


class Progress(Observer):
    """Shows stage, step, loss, images a second and time left on standard error.

    In a terminal of many colours it shows the sprites as they are learned, too, unless
    ``sprites`` is false.
    """

    terminal = True

    def __init__(self, sprites: bool = True) -> None:
        self.sprites = sprites
        self.console = Console(stderr=True)
        self.title = ""

    @hookimpl
    def celstack_run_started(self, decomposer: Decomposer, steps: int, step: int) -> None:
        """Open the bar, at the step after which a run goes on."""
        self.decomposer, self.steps, self.first = decomposer, steps, step
        self.began, self.images = time.monotonic(), 0
        self.findings: set[tuple[str, str]] = set()
        self.bar_due = self.sprites_due = self.began
        # Not is_terminal: some terminals cannot move their cursor.
        self.plain = not self.console.is_interactive
        colours = self.console.color_system == "truecolor"
        legible = self.console.encoding.startswith("utf")
        self.pictures = self.sprites and colours and legible and not self.plain
        self.bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("{task.fields[speed]} images/s"),
            TimeRemainingColumn(),
            console=self.console,
            disable=self.plain,
            # Pictures are a hundred times as much to draw as a bar.
            refresh_per_second=1 if self.pictures else 10,
        )
        self.task = self.bar.add_task("", total=steps, completed=step, loss="-", speed="-")
        self.bar.start()
        if step:
            self._line(f"step {step} of {steps}: goes on")

    @hookimpl
    def celstack_phase_started(self, phase: Phase, step: int) -> None:
        """Say which stage begins."""
        self.title = phase.title
        self.bar.update(self.task, description=self.title)
        if step == phase.start:
            self._line(f"step {step}: {self.title} begins")

    @hookimpl
    def celstack_step_finished(self, step: int, loss: Loss, images: int) -> None:
        """Move on; an accelerator is asked for its loss only when it can be seen."""
        self.images += images
        now = time.monotonic()
        if self.plain:
            if step * LINES // self.steps > (step - 1) * LINES // self.steps:
                self._line(self._describe(step, float(loss.total), now))
            return
        if now >= self.bar_due or step == self.steps:
            self.bar_due = now + BAR_EVERY
            text, speed = f"{float(loss.total):.5f}", f"{self._speed(now):,.0f}"
            self.bar.update(self.task, completed=step, loss=text, speed=speed)
        if now >= self.sprites_due or step == self.steps:
            self._show_sprites()

    @hookimpl
    def celstack_health_checked(self, step: int, findings: Sequence[Finding]) -> None:
        """Print what the health check finds: a line for each kind, and each finding once."""
        kinds: dict[str, list[Finding]] = {}
        for finding in findings:
            if (finding.kind, finding.part) not in self.findings:
                self.findings.add((finding.kind, finding.part))
                kinds.setdefault(finding.kind, []).append(finding)
        for kind, new in kinds.items():
            more = f", and {len(new) - 1} more" if len(new) > 1 else ""
            text = f"step {step}: health: {new[0]}{more}; see 'celstack show health {kind}'"
            self.bar.print(text, markup=False, highlight=False, soft_wrap=True)

    @hookimpl
    def celstack_sprites_reassigned(self, step: int, sprites: list[int]) -> None:
        """Say which sprites start again."""
        self._line(f"step {step}: unused sprites start again: {', '.join(map(str, sprites))}")

    @hookimpl
    def celstack_evaluated(self, step: int, scores: Mapping[str, float]) -> None:
        """Say the scores."""
        said = ", ".join(f"{name} {score:.4f}" for name, score in scores.items())
        if said:
            self._line(f"step {step}: {said}")

    @hookimpl
    def celstack_run_finished(self) -> None:
        """Close the bar."""
        self.bar.stop()

    @hookimpl
    def celstack_run_stopped(self, step: int, reason: str) -> None:
        """Close the bar, and leave the reason to whoever ends the run."""
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
            # The bar has a row, and the cursor another.
            size = self.console.width, self.console.height - 2
            self.bar.sprites = draw(self.decomposer.sprites.images(), *size)
            # Not from before drawing: where that is slow, it must not be all that is done.
            self.sprites_due = time.monotonic() + SPRITES_EVERY

    def _line(self, text: str) -> None:
        if self.plain:
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)


@hookimpl
def celstack_observers() -> dict[str, type[Progress]]:
    """Let recipes say ``observers = ["progress"]``."""
    return {"progress": Progress}
