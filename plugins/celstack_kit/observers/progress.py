"""Progress: a bar in the terminal, plain lines where no bar can move."""

from collections.abc import Mapping

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as Bar,
)

from celstack import Observer, hookimpl
from celstack.curriculum import Phase
from celstack.objective import Loss

LINES = 10
"""How many plain lines a run gets, apart from its beginning and end."""


class Progress(Observer):
    """Shows stage, step, loss and time left on standard error."""

    terminal = True

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self.title = ""

    @hookimpl
    def celstack_run_started(self, steps: int) -> None:
        """Open the bar."""
        self.steps = steps
        # Not is_terminal: some terminals cannot move their cursor.
        self.plain = not self.console.is_interactive
        self.bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}"),
            TimeRemainingColumn(),
            console=self.console,
            disable=self.plain,
        )
        self.task = self.bar.add_task("", total=steps, loss="-")
        self.bar.start()

    @hookimpl
    def celstack_phase_started(self, phase: Phase, step: int) -> None:
        """Say which stage begins."""
        self.title = phase.title
        self.bar.update(self.task, description=self.title)
        self._line(f"step {step}: {self.title} begins")

    @hookimpl
    def celstack_step_finished(self, step: int, loss: Loss) -> None:
        """Move on."""
        lined_up = step * LINES // self.steps > (step - 1) * LINES // self.steps
        if lined_up or not self.plain:
            text = f"{float(loss.total):.5f}"
            self.bar.update(self.task, completed=step, loss=text)
            self._line(f"step {step} of {self.steps}: {self.title}, loss {text}")

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

    def _line(self, text: str) -> None:
        if self.plain:
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)


@hookimpl
def celstack_observers() -> dict[str, type[Progress]]:
    """Let recipes say ``observers = ["progress"]``."""
    return {"progress": Progress}
