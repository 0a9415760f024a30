"""The runs of a sweep as jobs of a cluster, by submitit (the extra ``celstack[cluster]``)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celstack.errors import CelstackError
from celstack.recipe.overrides import parse_value
from celstack.runs.sweep.failures import why
from celstack.text import describe_error

if TYPE_CHECKING:
    from submitit import AutoExecutor, Job

    from celstack.runs.sweep.progress import Listener

LAUNCHERS = ("slurm", "local")
OPTION = "--launcher-set"
TIMES = ("timeout_min", "slurm_time")
POLL = {"slurm": 5.0, "local": 0.2}
"""Seconds between two looks at the jobs."""
CODE = "from celstack.cli import run_recipe; run_recipe()"


def read_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Read ``name=value`` texts: what submitit is to ask the cluster for."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise CelstackError(f"{OPTION} {text}: write name=value, as in timeout_min=120")
        settings[name.strip()] = parse_value(value.strip(), f"{OPTION} {text}")
    if not any(name in settings for name in TIMES):
        raise CelstackError(
            f"{OPTION}: say how many minutes a job may take, as in {OPTION} timeout_min=120"
        )
    return settings


def prepare(
    launcher: str, folder: Path, settings: Mapping[str, Any], jobs: int | None
) -> AutoExecutor:
    """Make what submits jobs, or say why that cannot be; nothing is submitted yet."""
    try:
        from submitit import AutoExecutor
    except ImportError as error:
        raise CelstackError(
            f"--launcher {launcher}: needs submitit: pip install 'celstack[cluster]'"
        ) from error
    if jobs is not None:
        settings = {"slurm_array_parallelism": jobs, **settings}
    try:
        executor = AutoExecutor(folder=folder, cluster=launcher)
        executor.update_parameters(**{"name": "celstack", **settings})
    # What it does not like it tells by errors of many kinds.
    except Exception as error:
        raise CelstackError(f"--launcher {launcher}: {describe_error(error)}") from error
    return executor


def run_there(
    makers: Sequence[Callable[[], Path]],
    listener: Listener,
    executor: AutoExecutor,
    device: str,
) -> dict[int, str]:
    """Submit a job for each folder and wait for all; return why some failed, by number.

    Ctrl-C cancels them; what they learned until their last checkpoint is kept.
    """
    folders = [make() for make in makers]
    going = dict(enumerate(_submit(executor, folders, device)))
    failures: dict[int, str] = {}
    for number, job in going.items():
        listener.begins(number, folders[number], f"is submitted as job {job.job_id}")
    try:
        while going:
            for number in [number for number, job in going.items() if job.done()]:
                # Its result would be a pickle; what counts is in the run's folder.
                said = going.pop(number).stderr() or ""
                reason = why(folders[number], said, None)
                if reason:
                    failures[number] = reason
                listener.ends(number, folders[number], reason)
            listener.looks()
            time.sleep(POLL[executor.cluster])
    except BaseException:
        for job in going.values():
            job.cancel(check=False)
        raise
    return failures


def _submit(executor: AutoExecutor, folders: Sequence[Path], device: str) -> list[Job[str]]:
    from submitit.helpers import CommandFunction

    threads = executor.parameters.get("cpus_per_task")
    share = ["env", f"OMP_NUM_THREADS={threads}"] if threads else []
    try:
        with executor.batch():
            return [
                # Plain command lines: there is no object of ours in what submitit pickles.
                executor.submit(CommandFunction([*share, *_command(folder, device)], False))
                for folder in folders
            ]
    except Exception as error:
        raise CelstackError(
            f"--launcher {executor.cluster}: nothing is submitted: {describe_error(error)}"
        ) from error


def _command(folder: Path, device: str) -> list[str]:
    """Return the command that begins a run, or goes on with it."""
    options = ["--quiet", "--device", device, "--resume", str(folder.resolve())]
    return [sys.executable, "-P", "-c", CODE, *options]
