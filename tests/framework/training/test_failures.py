"""What stops a run from outside is told in a line, and costs no more than it must."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

import celstack.training.loop
from celstack.errors import RecoverableError
from celstack.training.failures import classify_failure

CODE = "from celstack.cli import run_recipe; run_recipe()"
BROKEN = 6
ASSEMBLY = SimpleNamespace(
    training=SimpleNamespace(batch_size=32, workers=2), evaluation=SimpleNamespace(batch_size=8)
)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "MemoryError"),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't "
                "allocate memory: you tried to allocate 9 bytes. Error code 12"
            ),
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes",
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
            "OutOfMemoryError: CUDA out of memory",
        ),
        (
            RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"),
            "RuntimeError: MPS backend out of memory (MPS allocated: 1 GB)",
        ),
        (
            RuntimeError("Storage size calculation overflowed with sizes=[4611686018427]"),
            "RuntimeError: Storage size calculation overflowed with sizes=[4611686018427]",
        ),
    ],
)
def test_without_memory_the_batch_size_is_named_and_half_of_it_advised(error, told):
    assert str(classify_failure(error, ASSEMBLY)) == (
        f"out of memory ({told}): training.batch_size is 32 and evaluation.batch_size 8; "
        "start a new run with, for example, --set training.batch_size=16"
    )


def test_less_than_one_image_is_not_advised():
    single = SimpleNamespace(
        training=SimpleNamespace(batch_size=1), evaluation=ASSEMBLY.evaluation
    )

    assert str(classify_failure(MemoryError(), single)).endswith(
        "smaller images or fewer sprites"
    )


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. "),
        ConnectionResetError(104, "Connection reset by peer"),
        EOFError(),
    ],
)
def test_a_worker_that_died_is_told_as_such(error):
    told = str(classify_failure(error, ASSEMBLY))

    assert told.startswith("a data loader worker died (")
    assert told.endswith("use fewer than training.workers = 2")


def test_a_bug_is_not_recoverable():
    assert classify_failure(RuntimeError("shapes do not match"), ASSEMBLY) is None


@pytest.fixture
def start(command, small, tmp_path, monkeypatch):
    """Run the small recipe; something happens before its sixth step."""
    take_step = celstack.training.loop.take_step

    def run(happen):
        steps, out = iter(range(1, 99)), tmp_path / "runs"

        def step(*rest):
            if next(steps) == BROKEN:
                happen(next(out.glob("my/*")))
            return take_step(*rest)

        monkeypatch.setattr(celstack.training.loop, "take_step", step)
        changes = ["stages[0].steps=9", "training.checkpoint_every=2"]
        overrides = [word for change in changes for word in ("--set", change)]
        return command("run-recipe", small, "--out", str(out), "--device", "cpu", *overrides)

    return run


def test_out_of_memory_keeps_the_checkpoint_before_the_step(start, tmp_path):
    def allocate(_):
        torch.empty(2**60)

    answer = start(allocate)

    (folder,) = (tmp_path / "runs").glob("my/*")
    assert answer.code == 1
    (line,) = answer.complaint.splitlines()
    assert line.startswith(f"celstack: the run in {folder} failed: out of memory (")
    assert "training.batch_size is 32" in line
    assert line.endswith(
        f"progress saved. Resume with: run-recipe --resume {folder} --device cpu"
    )
    # The fifth step was whole, and is the last that counts.
    assert torch.load(folder / "checkpoint.pt", weights_only=True)["step"] == 4
    assert not list(folder.glob("*.tmp"))


def test_a_run_whose_folder_disappears_says_so_and_leaves_nothing(start, tmp_path):
    answer = start(shutil.rmtree)

    assert answer.code == 1
    (line,) = answer.complaint.splitlines()
    assert "No such file or directory; the run folder is gone, with all progress" in line
    assert list((tmp_path / "runs" / "my").iterdir()) == []


@pytest.fixture
def folder_recipe(write, tmp_path):
    """A recipe of endless steps over a folder of images, which two processes load."""
    images = tmp_path / "images"
    images.mkdir()
    for number in range(12):
        Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(images / f"{number}.png")
    return write(
        f"""\
dataset = {{ use = "image_folder", root = "{images.as_posix()}", size = [24, 24] }}
sprites = {{ use = "pixels", count = 2, size = [24, 24] }}
compositor = {{ use = "ordered", layers = 1 }}
selector = "greedy"
predictor = {{ use = "network", encoder = "strided" }}
transforms.layer = ["color", "position"]
stages = [{{ steps = 9999999 }}]
metrics = ["mse"]
evaluation = {{ images = 4, split = "train" }}
training = {{ batch_size = 2, workers = 2, checkpoint_every = 3 }}
"""
    )


@pytest.fixture
def disturb(folder_recipe, tmp_path):
    """Let something happen to a run that has learned for a while; return how it ended."""

    def run(happen):
        out = tmp_path / "runs"
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, folder_recipe, "--out", str(out), "--device", "cpu"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        try:
            end = time.monotonic() + 120
            while not list(out.glob("my/*/checkpoint.pt")):
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < end
                time.sleep(0.05)
            happen(process.pid)
            said, complaint = process.communicate(timeout=60)
        finally:
            process.kill()
        (folder,) = out.glob("my/*")
        assert said == ""
        assert torch.load(folder / "checkpoint.pt", weights_only=True)["step"] >= 1
        assert not list(folder.glob("*.tmp"))
        resume = f"run-recipe --resume {folder} --device cpu\n"
        assert complaint.endswith(f"progress saved. Resume with: {resume}")
        assert len(complaint.splitlines()) == 1
        return process.returncode, complaint

    return run


def workers(process):
    """Return the processes that a process has started."""
    children = f"/proc/{process}/task/{process}/children"
    return [int(child) for child in Path(children).read_text().split()]


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM can be sent there")
def test_sigterm_saves_and_stops_with_a_code_of_its_own(disturb):
    code, complaint = disturb(lambda process: os.kill(process, signal.SIGTERM))

    assert code == 143
    assert complaint.startswith("celstack: Stopped by SIGTERM; ")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM can be sent there")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_to_workers_and_all_makes_no_more_noise(number, code, disturb):
    assert disturb(lambda process: os.killpg(process, number))[0] == code


@linux
def test_a_worker_that_is_killed_ends_the_run_with_a_line(disturb):
    code, complaint = disturb(lambda process: os.kill(workers(process)[0], signal.SIGKILL))

    assert code == 1
    assert "failed: a data loader worker died (" in complaint


@pytest.mark.skipif(sys.platform == "win32", reason="files in use cannot be moved there")
def test_images_that_disappear_are_named(disturb, tmp_path):
    code, complaint = disturb(lambda _: (tmp_path / "images").rename(tmp_path / "away"))

    assert code == 1
    assert re.search(
        r"failed: images cannot be read: \S+/images/\d+\.png: damaged or unreadable "
        r"\(no such file\); ",
        complaint,
    )


def test_recoverable_errors_pass_from_one_process_to_another():
    import pickle

    assert str(pickle.loads(pickle.dumps(RecoverableError("gone")))) == "gone"
