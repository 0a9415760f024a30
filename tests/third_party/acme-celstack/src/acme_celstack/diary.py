"""Diary: write down everything that happens."""

from collections.abc import Mapping
from pathlib import Path

from celstack import Assembly, Observer, ScheduledStage, hookimpl


class Diary(Observer):
    """Writes a line for every event into a file in the run's folder."""

    def __init__(self, file: str = "diary.txt") -> None:
        self.file = file
        self.page: Path | None = None

    @hookimpl
    def celstack_run_started(self, assembly: Assembly, folder: Path | None, steps: int) -> None:
        """Open a page."""
        self.page = folder / self.file if folder else None
        self._note(f"started on {assembly.dataset.name} for {steps} steps")

    @hookimpl
    def celstack_phase_started(self, phase: ScheduledStage) -> None:
        """Note the stage."""
        self._note(f"stage {phase.title}")

    @hookimpl
    def celstack_step_finished(self, step: int, images: int) -> None:
        """Note the step."""
        self._note(f"step {step} on {images} images")

    @hookimpl
    def celstack_evaluated(self, scores: Mapping[str, float]) -> None:
        """Note what was scored."""
        self._note(f"scored {', '.join(scores)}")

    @hookimpl
    def celstack_run_finished(self) -> None:
        """Note the end."""
        self._note("finished")

    @hookimpl
    def celstack_run_stopped(self, reason: str) -> None:
        """Note the sudden end."""
        self._note(f"stopped: {reason}")

    def _note(self, line: str) -> None:
        if self.page is not None:
            with self.page.open("a", encoding="utf-8") as page:
                page.write(line + "\n")


@hookimpl
def celstack_observers() -> dict[str, type[Diary]]:
    """Let recipes say ``observers = ["acme_diary"]``."""
    return {"acme_diary": Diary}
