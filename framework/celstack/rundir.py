"""The run directory, and the only module that writes into one."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from celstack.errors import CelstackError

if TYPE_CHECKING:
    import torch

    from celstack.assembly import Assembly
    from celstack.interfaces.metric import Metric
    from celstack.model import Decomposer
    from celstack.resolved import ResolvedRecipe

PACKAGES = ("celstack", "torch", "torchvision", "numpy")


class RunDirectory:
    """A folder that holds everything about one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log: TextIO | None = None

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

    def save_recipe(self, resolved: ResolvedRecipe) -> None:
        """Write the recipe in full, and on what machine it runs."""
        import tomli_w

        heading = f"# {resolved.source}, with everything it leaves unsaid; can be run again.\n"
        self._write("resolved.toml", heading + tomli_w.dumps(resolved.as_table()))
        self._write("environment.json", json.dumps(environment(), indent=2) + "\n")

    def log(self, **fields: Any) -> None:
        """Append a line, such as that of a training step."""
        if self._log is None:
            self._log = (self.folder / "log.jsonl").open("a", encoding="utf-8", buffering=1)
        self._log.write(json.dumps(fields) + "\n")

    def save_checkpoint(
        self,
        decomposer: Decomposer,
        optimizer: torch.optim.Optimizer,
        step: int,
        stage: int = 1,
    ) -> None:
        """Write weights and optimiser so that a crash leaves the old file or the new, whole."""
        import torch

        state = {
            "version": version("celstack"),
            "step": step,
            "stage": stage,
            # Of what a stage sets, this is not among the weights.
            "sprites_frozen": decomposer.sprites_frozen,
            "model": decomposer.state_dict(),
            "optimizer": optimizer.state_dict(),
        }
        temporary = self.folder / "checkpoint.pt.tmp"
        torch.save(state, temporary)
        temporary.replace(self.folder / "checkpoint.pt")

    def save_results(
        self, decomposer: Decomposer, assembly: Assembly, scores: dict[str, float]
    ) -> None:
        """Write what was learned and how well: sprites, examples, metrics."""
        from celstack.pictures import draw_examples, draw_sprites

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
                write_whole(path, to_json({"settings": settings, **results}))
                return path
            number += 1

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _write(self, name: str, text: str) -> None:
        write_whole(self.folder / name, text)


def write_whole(path: Path, text: str) -> None:
    """Write a file so that whoever reads it finds the old one or the new, whole."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def to_json(value: Any) -> str:
    """Spell a value as JSON, which has no word for what is not a number but null."""
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def judged_on(assembly: Assembly, scores: Mapping[str, float]) -> dict[str, Any]:
    """Say what scores were measured on, and in what unit tables show them.

    ``files`` are the published files of the dataset; without them, ``root`` is the data itself.
    """
    split, images = assembly.evaluation.split, assembly.evaluation.images
    return {
        "split": split,
        "images": min(images, assembly.dataset.count(split)),
        "files": list(assembly.dataset.files),
        "percent": percentages(assembly.metrics, scores),
    }


def percentages(metrics: Iterable[Metric], scores: Mapping[str, float]) -> list[str]:
    """Name the scores that tables show in percent."""
    return [metric.name for metric in metrics if metric.percent and metric.name in scores]


def image_scores(
    metrics: Iterable[Metric], scores: Mapping[str, float]
) -> dict[str, list[float]]:
    """Return the scores of each image, of the metrics that were at work and keep them."""
    kept = [metric for metric in metrics if metric.name in scores]
    return {metric.name: list(metric.scores) for metric in kept if metric.scores is not None}


def now() -> str:
    """Spell the time for the name of a file."""
    return datetime.now().astimezone().strftime("%Y-%m-%d-%H.%M.%S")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _settings_in(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))["settings"]
    except (ValueError, TypeError, KeyError):  # damaged, or not ours: it is left alone
        return None


def environment() -> dict[str, Any]:
    """Describe the machine and the versions that matter."""
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: version(name) for name in PACKAGES},
        "command": sys.argv,
    }
