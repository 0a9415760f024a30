"""CLEVR-like images in chunks, rendered by several processes; finished chunks are kept.

Each process is started as ``python -m celstack_kit.clevr.workers`` and told its part
on standard input. Unlike those of ``multiprocessing`` it does not run the caller's script
again, and unlike forks it shares nothing with torch.
"""

import json
import os
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Generator, Sequence
from pathlib import Path
from zipfile import BadZipFile

import attrs
import numpy as np

from celstack import CelstackError
from celstack.text import one_line
from celstack_kit.clevr import renderer
from celstack_kit.clevr.layout import arrangements
from celstack_kit.dataset_support.cache_writer import Pixels
from celstack_kit.dataset_support.labeled_image import Labeled

CHUNK = 8
SEEN = 200 / 192**2
"""The least part of the image that each object fills: CLEVR asks for 200 pixels."""
LOOK = 0.05
"""Seconds between two looks at whether a chunk is there."""


@attrs.frozen
class Job:
    """All that images depend on, apart from their numbers."""

    seed: int
    split: int
    least: int
    most: int
    samples: int
    side: int


def draw(job: Job, index: int) -> Labeled:
    """Return one image: a function of job and index."""
    random = np.random.default_rng([job.seed, job.split, index])
    for scene in arrangements(random, job.least, job.most):
        ids = renderer.instances(scene, job.side)
        pixels = np.bincount(ids.ravel(), minlength=len(scene.things) + 1)[1:]
        if pixels.min() >= SEEN * job.side**2:
            break
    classes = np.array([0, *(thing.class_number for thing in scene.things)], np.uint8)
    image = renderer.render(scene, ids, job.samples, int(random.integers(2**30)))
    return Labeled(image, ids, classes[ids])


def chunks(
    job: Job, count: int, folder: Path, processes: int
) -> Generator[list[Pixels], None, None]:
    """Return images, instances and classes, chunk by chunk and in the order of their indices.

    Chunks that are in the folder are not rendered again. Processes end with this one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    starts = range(0, count, CHUNK)
    ranges = [(start, min(start + CHUNK, count)) for start in starts]
    missing = [chunk for chunk in ranges if not _file(folder, *chunk).exists()]
    shares = [missing[n::processes] for n in range(min(processes, len(missing)))]
    crew: list[subprocess.Popen[str]] = []
    try:
        crew += [_start(job, folder, number, share) for number, share in enumerate(shares)]
        for chunk in ranges:
            yield _wait(_file(folder, *chunk), folder, crew)
    finally:
        for worker in crew:
            worker.kill()
            worker.communicate()


def _start(
    job: Job, folder: Path, number: int, share: Sequence[tuple[int, int]]
) -> subprocess.Popen[str]:
    """Start a process with its share of the chunks."""
    told = json.dumps({"job": attrs.asdict(job), "folder": str(folder), "share": list(share)})
    with (folder / f"{number}.log").open("w", encoding="utf-8") as log:
        worker = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            text=True,
        )
    assert worker.stdin is not None
    # Not closed: the end of its input tells the process that this one has ended.
    worker.stdin.write(f"{told}\n")
    worker.stdin.flush()
    return worker


def _wait(path: Path, folder: Path, crew: Sequence["subprocess.Popen[str]"]) -> list[Pixels]:
    """Return a chunk once it is there."""
    while not path.exists():
        for number, worker in enumerate(crew):
            if worker.poll():
                said = (folder / f"{number}.log").read_text("utf-8", "replace").split("\n")
                reason = next((line for line in reversed(said) if line.strip()), "no word")
                raise CelstackError(f"clevr6: a process that renders has failed ({reason})")
        time.sleep(LOOK)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return [kept[name] for name in Labeled._fields]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        text = "damaged; delete it, and it is rendered again"
        raise CelstackError(f"{path}: {text} ({one_line(error)})") from error


def _file(folder: Path, start: int, stop: int) -> Path:
    return folder / f"{start}-{stop}.npz"


def processes() -> int:
    """Return how many processors there are for us."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _work() -> None:
    """Render what is asked for on standard input, as a process of its own."""
    told = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    job, folder = Job(**told["job"]), Path(told["folder"])
    for start, stop in told["share"]:
        drawn = (draw(job, index) for index in range(start, stop))
        image, instances, classes = map(np.stack, zip(*drawn, strict=True))
        path = _file(folder, start, stop)
        beside = path.with_suffix(".part")
        with beside.open("wb") as file:
            np.savez_compressed(file, image=image, instances=instances, classes=classes)
        beside.replace(path)


def _end_with_input() -> None:
    """Stop when whoever started this process does, however that happens."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    _work()
