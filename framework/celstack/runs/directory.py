"""The run directory: writes the files of a run, and is the only module that does."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from celstack.errors import CelstackError
from celstack.files import finite, to_json, write_atomic
from celstack.runs.finished import FINISHING, read_evaluation_settings
from celstack.system import environment
from celstack.text import printable

if TYPE_CHECKING:
    from PIL.Image import Image

    from celstack.recipe.resolved import ResolvedRecipe
    from celstack.runs.results import RunResults

BEST_SPRITES = "best.png"
"""The picture of a finished run's best sprites."""
EXAMPLES = "examples"
"""The folder of a finished run's examples."""
MAX_RUNS_PER_SECOND = 1000


class RunDirectory:
    """The folder of one run.

    Example:
        >>> directory = RunDirectory.create(Path("runs"), "tetrominoes", seed=0)
        >>> celstack.run(assembly, directory)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log: io.FileIO | None = None

    @classmethod
    def create(cls, base: Path, name: str, seed: int) -> RunDirectory:
        """Make a new folder ``base/name/time-seedN``."""
        start = timestamp()
        try:
            (base / name).mkdir(parents=True, exist_ok=True)
            for attempt in range(MAX_RUNS_PER_SECOND):
                suffix = f"-{attempt}" if attempt else ""
                folder = base / name / f"{start}-seed{seed}{suffix}"
                try:
                    folder.mkdir()
                except FileExistsError:
                    continue
                return cls(folder)
        except OSError as error:
            raise CelstackError(
                f"--out {base}: cannot write there: {error.strerror}"
            ) from error
        raise CelstackError(
            f"--out {base}: {MAX_RUNS_PER_SECOND} runs were started in the same second"
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder against other processes, and close the log at the end."""
        from filelock import FileLock, Timeout

        lock = FileLock(self.folder / ".lock", timeout=0)
        try:
            lock.acquire()
            # Fail now rather than at the first checkpoint, when hours may be lost.
            with TemporaryFile(dir=self.folder):
                pass
        except Timeout:
            raise CelstackError(
                f"{self.folder}: this run is in use by another process; wait for it to "
                "finish, or stop it first"
            ) from None
        except OSError as error:
            lock.release()
            reason = error.strerror or error
            raise CelstackError(f"{self.folder}: cannot write there: {reason}") from error
        try:
            yield
        finally:
            self.close()
            lock.release()

    def save_recipe(self, resolved: ResolvedRecipe) -> None:
        """Write the recipe as given, the resolved recipe, and the environment.

        The environment names the packages of all plugins that the recipe uses.
        """
        import tomli_w

        self._write("recipe.toml", resolved.text)
        found = environment(resolved.packages)
        self._write("environment.json", json.dumps(found, indent=2) + "\n")
        again = "can be run again" if resolved.runnable else "made in Python, not a full recipe"
        heading = f"# {printable(resolved.source)}, including defaults; {again}.\n"
        # Written last, because its presence marks the folder of a run.
        self._write("resolved.toml", heading + tomli_w.dumps(resolved.as_table()))

    def log(self, **fields: Any) -> None:
        """Append a line to the log; it is not lost if the process is killed.

        NaN and infinity, which JSON lacks, become null.
        """
        if self._log is None:
            # Unbuffered, so that a written line is in the hands of the operating system.
            self._log = (self.folder / "log.jsonl").open("ab", buffering=0)
        line = (json.dumps(finite(fields), allow_nan=False) + "\n").encode()
        while line:
            line = line[self._log.write(line) :]

    def truncate_log(self, size: int) -> None:
        """Remove everything after the first ``size`` bytes of the log."""
        path = self.folder / "log.jsonl"
        if path.is_file() and path.stat().st_size > size:
            os.truncate(path, size)

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Replace the checkpoint atomically: a crash leaves the old file or the new one.

        The checkpoint stores the size of the log, which is flushed to disk first.
        """
        import torch

        if self._log is not None:
            os.fsync(self._log.fileno())
        log = self.folder / "log.jsonl"
        size = log.stat().st_size if log.is_file() else 0
        # Into memory first, because torch's own writer hides the errors of a disk.
        content = io.BytesIO()
        torch.save({**state, "log": size}, content)
        write_atomic(self.folder / "checkpoint.pt", content.getbuffer())

    def save_page(self, page: str) -> Path:
        """Write the report page atomically, and return its path."""
        self._write("report.html", page)
        return self.folder / "report.html"

    def save_results(self, results: RunResults) -> None:
        """Write scores and pictures, and close the log.

        With the statistics and examples, a report can be made without the dataset.
        """
        if results.sprite_stats is not None:
            self._write("census.json", to_json(results.sprite_stats))
        for name, picture in results.examples.items():
            self._save_picture(f"{EXAMPLES}/{name}", picture)
        if results.best_sprites is not None:
            self._save_picture(BEST_SPRITES, results.best_sprites)
        for number, sprite in enumerate(results.sprites):
            self._save_picture(f"sprites/{number:02d}.png", sprite)
        self._save_picture("examples.png", results.example_sheet)
        self._write("evaluation.json", to_json(results.metadata))
        self._write("scores.json", to_json(results.image_scores))
        # Written last, because its presence marks a finished run.
        self._write("metrics.json", to_json(results.scores))
        self.close()

    def begin_finish(self) -> None:
        """Mark the run as not finished until `finish`, even when its results are written.

        If it is killed in between, resuming it evaluates it again and notifies observers.
        """
        self._write(FINISHING, "")

    def finish(self) -> None:
        """Remove the mark of `begin_finish`."""
        (self.folder / FINISHING).unlink(missing_ok=True)

    def save_evaluation(self, settings: Mapping[str, Any], results: Mapping[str, Any]) -> Path:
        """Write a later evaluation; it replaces only one with the same settings."""
        folder = self.folder / "evaluations"
        folder.mkdir(exist_ok=True)
        number = 1
        while True:
            suffix = f"-{number}" if number > 1 else ""
            path = folder / f"{settings['split']}{suffix}.json"
            if not path.exists() or read_evaluation_settings(path) == settings:
                write_atomic(path, to_json({"settings": settings, **results}))
                return path
            number += 1

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _write(self, name: str, text: str) -> None:
        write_atomic(self.folder / name, text)

    def _save_picture(self, name: str, picture: Image) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        picture.save(path)


def timestamp() -> str:
    """Return the local time as part of a file name."""
    return datetime.now().astimezone().strftime("%Y-%m-%d-%H.%M.%S")
