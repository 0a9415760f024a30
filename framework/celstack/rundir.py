"""The run directory, and the only module that writes into one."""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from celstack.errors import CelstackError

if TYPE_CHECKING:
    import torch

    from celstack.assembly import Assembly
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
        moment = datetime.now().astimezone().strftime("%Y-%m-%d-%H.%M.%S")
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
        self, decomposer: Decomposer, optimizer: torch.optim.Optimizer, step: int
    ) -> None:
        """Write weights and optimiser so that a crash leaves the old file or the new, whole."""
        import torch

        state = {
            "step": step,
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
        self._write("metrics.json", json.dumps(scores, indent=2) + "\n")
        self.close()

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def _write(self, name: str, text: str) -> None:
        temporary = self.folder / f"{name}.tmp"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self.folder / name)


def environment() -> dict[str, Any]:
    """Describe the machine and the versions that matter."""
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: version(name) for name in PACKAGES},
        "command": sys.argv,
    }
