"""Disks that are full and folders that are closed: a message, and the last good checkpoint."""

import ctypes
import os
import sys
from types import SimpleNamespace

import pytest
import torch

import celstack.training.loop

resource = pytest.importorskip("resource")

STEPS = 9
BROKEN = 6
"""The first step that the disk does not take."""


@pytest.fixture
def start(command, small, tmp_path, monkeypatch):
    """Run the small recipe; something happens to its folder before a step is counted."""
    take_step = celstack.training.loop.take_step

    def run(happen=None):
        steps = iter(range(1, STEPS + 1))
        out = tmp_path / "runs"

        def step(*rest):
            if happen and next(steps) == BROKEN:
                happen(next(out.glob("my/*")))
            return take_step(*rest)

        monkeypatch.setattr(celstack.training.loop, "take_step", step)
        changes = [f"stages[0].steps={STEPS}", "training.checkpoint_every=2"]
        overrides = [word for change in changes for word in ("--set", change)]
        answer = command("run-recipe", small, "--out", str(out), "--device", "cpu", *overrides)
        monkeypatch.setattr(celstack.training.loop, "take_step", take_step)
        return SimpleNamespace(answer=answer, folder=max(out.glob("my/*")))

    return run


def saved(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)


def test_a_full_disk_is_named_and_the_last_checkpoint_kept(start, assert_goes_on):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(folder):
        # The log may not grow by a byte, as on a disk that is full.
        size = (folder / "log.jsonl").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))

    try:
        stopped = start(fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    folder = stopped.folder
    assert stopped.answer.code == 1
    assert stopped.answer.complaint == (
        f"celstack: the run in {folder} failed: File too large; progress saved. "
        f"Resume with: run-recipe --resume {folder} --device cpu\n"
    )
    assert saved(folder)["step"] == 4
    assert not list(folder.glob("*.tmp"))
    assert_goes_on(folder)


def test_a_checkpoint_that_does_not_fit_leaves_the_last_one(start, assert_goes_on):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(folder):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))

    try:
        stopped = start(fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert stopped.answer.code == 1
    assert "File too large; progress saved. Resume with: " in stopped.answer.complaint
    assert saved(stopped.folder)["step"] == 4
    assert not list(stopped.folder.glob("*.tmp"))
    assert_goes_on(stopped.folder)


@pytest.fixture
def assert_goes_on(start, command, log_of):
    """Say that a run, its disk mended, ends as one that nothing happened to."""

    def check(folder):
        resumed = command("run-recipe", "--resume", str(folder), "--device", "cpu")
        assert resumed.code == 0, resumed.complaint
        undisturbed = start().folder
        for weights in zip(
            saved(folder)["model"].values(), saved(undisturbed)["model"].values(), strict=True
        ):
            assert torch.equal(*weights)
        assert log_of(folder) == log_of(undisturbed)

    return check


@pytest.fixture
def bound_by_permissions():
    """Take from the administrator, who may write anywhere, the power to do so."""
    if os.geteuid() != 0:
        yield
        return
    if not sys.platform.startswith("linux"):
        pytest.skip("the administrator may write anywhere")
    libc = ctypes.CDLL(None)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # linux/capability.h, version 3; this thread
    powers = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice 32 bits
    assert libc.capget(header, powers) == 0
    before = powers[0]
    powers[0] = before & ~0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
    assert libc.capset(header, powers) == 0
    yield
    powers[0] = before
    assert libc.capset(header, powers) == 0


@pytest.mark.usefixtures("bound_by_permissions")
def test_a_folder_that_is_closed_during_a_run_keeps_the_last_checkpoint(
    start, command, assert_goes_on
):
    stopped = start(lambda folder: folder.chmod(0o555))
    folder = stopped.folder

    try:
        assert stopped.answer.code == 1
        assert stopped.answer.complaint == (
            f"celstack: the run in {folder} failed: {folder}/checkpoint.pt.tmp: Permission "
            "denied; progress saved. Resume with: run-recipe --resume "
            f"{folder} --device cpu\n"
        )
        assert saved(folder)["step"] == 4
        resumed = command("run-recipe", "--resume", str(folder), "--device", "cpu")
        assert resumed.code == 2
        assert resumed.complaint == (
            f"celstack: {folder}: cannot write there: Permission denied\n"
        )
        assert saved(folder)["step"] == 4
    finally:
        folder.chmod(0o755)
    assert_goes_on(folder)


@pytest.mark.usefixtures("bound_by_permissions")
def test_no_run_begins_where_nothing_can_be_written(command, small, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)

    answer = command("run-recipe", small, "--out", str(closed))

    assert answer.code == 2
    assert answer.complaint == (
        f"celstack: --out {closed}: cannot write there: Permission denied\n"
    )
