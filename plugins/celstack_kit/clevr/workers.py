"""Render CLEVR-like images in worker processes, chunk by chunk; finished chunks are kept.

A worker is ``python -m celstack_kit.clevr.workers``, with its request as standard input.
Unlike those of ``multiprocessing`` it does not import the caller's main module again, and
unlike a fork it shares no state with torch.
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
from celstack.text import describe_error
from celstack_kit.clevr import renderer
from celstack_kit.clevr.layout import sample_layouts
from celstack_kit.dataset_support.cache_writer import UInt8Array
from celstack_kit.dataset_support.labeled_image import LabeledImage

CHUNK_IMAGES = 8
MIN_VISIBLE_SHARE = 200 / 192**2
"""Minimum visible share of the image per object: 200 pixels in CLEVR."""
POLL_SECONDS = 0.05
"""Interval at which unfinished chunks are checked."""


@attrs.frozen
class RenderJob:
    """All that an image depends on, apart from its index."""

    seed: int
    split: int
    min_objects: int
    max_objects: int
    samples: int
    side: int
    look: renderer.Look = attrs.field(factory=renderer.Look)


def render_image(job: RenderJob, index: int) -> LabeledImage:
    """Render one image, which is a function of job and index."""
    random = np.random.default_rng([job.seed, job.split, index])
    for scene in sample_layouts(random, job.min_objects, job.max_objects):
        ids = renderer.instance_map(scene, job.side)
        pixels = np.bincount(ids.ravel(), minlength=len(scene.objects) + 1)[1:]
        if pixels.min() >= MIN_VISIBLE_SHARE * job.side**2:
            break
    classes = np.array([0, *(thing.class_number for thing in scene.objects)], np.uint8)
    image = renderer.render(scene, job.side, job.samples, int(random.integers(2**30)), job.look)
    return LabeledImage(image, ids, classes[ids])


def render_chunks(
    job: RenderJob, count: int, folder: Path, processes: int
) -> Generator[list[UInt8Array], None, None]:
    """Yield images, instance maps and class maps, chunk by chunk, in the order of indices.

    Chunks that exist in the folder are not rendered again. Workers are killed when this
    generator is closed, and exit when this process ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    starts = range(0, count, CHUNK_IMAGES)
    ranges = [(start, min(start + CHUNK_IMAGES, count)) for start in starts]
    missing = [chunk for chunk in ranges if not _file(folder, *chunk).exists()]
    shares = [missing[n::processes] for n in range(min(processes, len(missing)))]
    workers: list[subprocess.Popen[str]] = []
    try:
        workers += [
            _start_worker(job, folder, number, share) for number, share in enumerate(shares)
        ]
        for chunk in ranges:
            yield _wait(_file(folder, *chunk), folder, workers)
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def _start_worker(
    job: RenderJob, folder: Path, number: int, share: Sequence[tuple[int, int]]
) -> subprocess.Popen[str]:
    """Start a worker that renders its share of the chunks."""
    request = json.dumps(
        {"job": attrs.asdict(job), "folder": str(folder), "share": list(share)}
    )
    with (folder / f"{number}.log").open("w", encoding="utf-8") as log:
        worker = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            text=True,
        )
    assert worker.stdin is not None
    # Left open: end of file tells the worker that this process has ended.
    worker.stdin.write(f"{request}\n")
    worker.stdin.flush()
    return worker


def _wait(
    path: Path, folder: Path, workers: Sequence["subprocess.Popen[str]"]
) -> list[UInt8Array]:
    """Wait until a chunk is finished, and load it; raise CelstackError if a worker failed."""
    while not path.exists():
        for number, worker in enumerate(workers):
            if worker.poll():
                log = (folder / f"{number}.log").read_text("utf-8", "replace").split("\n")
                reason = next((line for line in reversed(log) if line.strip()), "no message")
                raise CelstackError(f"clevr6: a rendering process failed ({reason})")
        time.sleep(POLL_SECONDS)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return [kept[name] for name in LabeledImage._fields]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        text = "damaged; delete it to render it again"
        raise CelstackError(f"{path}: {text} ({describe_error(error)})") from error


def _file(folder: Path, start: int, stop: int) -> Path:
    return folder / f"{start}-{stop}.npz"


def available_cpus() -> int:
    """Return the number of CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _work() -> None:
    """Run a worker: render the chunks of the request on standard input."""
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_exit_at_end_of_input, daemon=True).start()
    look = renderer.Look(**request["job"].pop("look"))
    job, folder = RenderJob(**request["job"], look=look), Path(request["folder"])
    for start, stop in request["share"]:
        rendered = (render_image(job, index) for index in range(start, stop))
        image, instances, classes = map(np.stack, zip(*rendered, strict=True))
        path = _file(folder, start, stop)
        staging = path.with_suffix(".part")
        with staging.open("wb") as file:
            np.savez_compressed(file, image=image, instances=instances, classes=classes)
        staging.replace(path)


def _exit_at_end_of_input() -> None:
    """Exit when the process that started this one ends, for whatever reason."""
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    _work()
