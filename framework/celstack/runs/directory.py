"""The run directory, and the only module that writes into one."""

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
from celstack.evaluation.score_metadata import image_scores, judged_on, percentages
from celstack.files import to_json, write_atomic
from celstack.runs.finished import read_resolved
from celstack.system import environment

if TYPE_CHECKING:
    from celstack.evaluation.sprite_stats import Census
    from celstack.model.decomposer import Decomposer
    from celstack.recipe.assembly import Assembly
    from celstack.recipe.resolved import ResolvedRecipe

BEST = "best.png"
"""The picture of a finished run's best sprites."""


class RunDirectory:
    """A folder that holds everything about one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log: io.FileIO | None = None

    @classmethod
    def create(cls, base: Path, name: str, seed: int) -> RunDirectory:
        """Make a new folder ``base/name/time-seedN``, or say why that cannot be."""
        moment = now()
        try:
            (base / name).mkdir(parents=True, exist_ok=True)
            for attempt in range(1000):
                suffix = f"-{attempt}" if attempt else ""
                folder = base / name / f"{moment}-seed{seed}{suffix}"
                try:
                    folder.mkdir()
                except FileExistsError:
                    continue
                return cls(folder)
        except OSError as error:
            raise CelstackError(
                f"--out {base}: cannot write there: {error.strerror}"
            ) from error
        raise CelstackError(f"--out {base}: a thousand runs began in the same second")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from running in this folder, or say that one does."""
        from filelock import FileLock, Timeout

        lock = FileLock(self.folder / ".lock", timeout=0)
        try:
            lock.acquire()
            # Rather now than at the first checkpoint, when hours may be lost.
            with TemporaryFile(dir=self.folder):
                pass
        except Timeout:
            raise CelstackError(
                f"{self.folder}: another process is at work on this run; let it finish, "
                "or stop it first"
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
        """Write the recipe as it was given and in full, and on what machine it runs."""
        import tomli_w

        self._write("recipe.toml", resolved.text)
        self._write("environment.json", json.dumps(environment(), indent=2) + "\n")
        heading = f"# {resolved.source}, with everything it leaves unsaid; can be run again.\n"
        # The last to be written: a folder that has it is that of a run.
        self._write("resolved.toml", heading + tomli_w.dumps(resolved.as_table()))

    def recipe(self) -> str:
        """Return the recipe in full as JSON; nothing where the run was made without one."""
        if not (self.folder / "resolved.toml").is_file():
            return ""
        return json.dumps(read_resolved(self.folder), default=str)

    def log(self, **fields: Any) -> None:
        """Append a line, such as that of a training step; it outlives the process."""
        if self._log is None:
            # Without a buffer, a line is with the system as soon as it is written.
            self._log = (self.folder / "log.jsonl").open("ab", buffering=0)
        line = (json.dumps(fields) + "\n").encode()
        while line:
            line = line[self._log.write(line) :]

    def cut_log(self, size: int) -> None:
        """Forget what was logged after the first so many bytes."""
        path = self.folder / "log.jsonl"
        if path.is_file() and path.stat().st_size > size:
            os.truncate(path, size)

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Write a checkpoint so that a crash leaves the old file or the new, whole.

        It remembers how long the log is, which is made to last first.
        """
        import torch

        if self._log is not None:
            os.fsync(self._log.fileno())
        log = self.folder / "log.jsonl"
        size = log.stat().st_size if log.is_file() else 0
        # In memory first: torch's own writer does not tell what a disk complains of.
        content = io.BytesIO()
        torch.save({**state, "log": size}, content)
        write_atomic(self.folder / "checkpoint.pt", content.getbuffer())

    def save_census(
        self, census: Census, assembly: Assembly, scores: Mapping[str, float]
    ) -> None:
        """Write what sprites were used for, and the images that are worth looking at.

        With these, the page of a run can be made again where its data is not.
        """
        from celstack.evaluation.visualize import to_picture
        from celstack.runs.examples import FOLDER, choose, file_names

        dataset, metrics = assembly.dataset, assembly.metrics
        self._write("census.json", to_json(census.tell(dataset.class_names)))
        ranks = image_scores(metrics, scores)
        examples = choose(ranks, percentages(metrics, scores), census.images)
        images = dataset.read(assembly.evaluation.split, [e.number for e in examples]).images
        (self.folder / FOLDER).mkdir(exist_ok=True)
        for name, image in zip(file_names(examples), images, strict=True):
            to_picture(image).save(self.folder / FOLDER / name)

    def save_best(self, decomposer: Decomposer, census: Census, assembly: Assembly) -> None:
        """Draw the sprites that are worth most, and images that they explain."""
        from celstack.evaluation.visualize import draw_best

        picture = draw_best(decomposer, census, assembly)
        if picture is not None:
            picture.save(self.folder / BEST)

    def save_page(self, page: str) -> Path:
        """Write the report page, whole, and return where."""
        self._write("report.html", page)
        return self.folder / "report.html"

    def save_results(
        self, decomposer: Decomposer, assembly: Assembly, scores: dict[str, float]
    ) -> None:
        """Write what was learned and how well: sprites, examples, metrics."""
        from celstack.evaluation.visualize import draw_examples, draw_sprites

        (self.folder / "sprites").mkdir(exist_ok=True)
        for number, sprite in enumerate(draw_sprites(decomposer)):
            sprite.save(self.folder / "sprites" / f"{number:02d}.png")
        draw_examples(decomposer, assembly).save(self.folder / "examples.png")
        self._write("evaluation.json", to_json(judged_on(assembly, scores)))
        self._write("scores.json", to_json(image_scores(assembly.metrics, scores)))
        # The last to be written: a run that has it is finished.
        self._write("metrics.json", to_json(scores))
        self.close()

    def save_evaluation(self, settings: Mapping[str, Any], results: Mapping[str, Any]) -> Path:
        """Write a later evaluation; it replaces one of the same settings and no other."""
        folder = self.folder / "evaluations"
        folder.mkdir(exist_ok=True)
        number = 1
        while True:
            suffix = f"-{number}" if number > 1 else ""
            path = folder / f"{settings['split']}{suffix}.json"
            if not path.exists() or _settings_in(path) == settings:
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


def now() -> str:
    """Spell the time for the name of a file."""
    return datetime.now().astimezone().strftime("%Y-%m-%d-%H.%M.%S")


def _settings_in(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))["settings"]
    except (ValueError, TypeError, KeyError):  # damaged, or not ours: it is left alone
        return None
