"""Cluster execution of a sweep by submitit (the extra ``celstack[cluster]``)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celstack.errors import CelstackError
from celstack.recipe.overrides import parse_value
from celstack.runs.sweep.failures import failure_reason
from celstack.text import describe_error

if TYPE_CHECKING:
    from submitit import AutoExecutor, Job

    from celstack.runs.sweep.progress import SweepProgress

LAUNCHERS = ("slurm", "local")
OPTION = "--launcher-set"
TIMES = ("timeout_min", "slurm_time")
POLL_SECONDS = {"slurm": 5.0, "local": 0.2}
CODE = "from celstack.cli import run_recipe; run_recipe()"


def read_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Parse ``name=value`` texts: the parameters for submitit."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise CelstackError(
                f"{OPTION} {text}: expected name=value, such as timeout_min=120"
            )
        settings[name.strip()] = parse_value(value.strip(), f"{OPTION} {text}")
    if not any(name in settings for name in TIMES):
        raise CelstackError(
            f"{OPTION}: the time limit of jobs is required, such as {OPTION} timeout_min=120"
        )
    return settings


def make_executor(
    launcher: str, folder: Path, settings: Mapping[str, Any], jobs: int | None
) -> AutoExecutor:
    """Make the executor that submits jobs, without submitting any yet."""
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
    # submitit raises errors of many types for invalid parameters.
    except Exception as error:
        raise CelstackError(f"--launcher {launcher}: {describe_error(error)}") from error
    return executor


def run_on_cluster(
    folders: Sequence[Callable[[], Path]],
    progress: SweepProgress,
    executor: AutoExecutor,
    device: str,
) -> dict[int, str]:
    """Submit a job for each run and wait for all. Ctrl-C cancels them.

    Args:
        folders: For each run, a function that makes its folder.
        progress: Notified when runs are submitted and end.
        executor: What submits the jobs.
        device: The device of all runs.

    Returns:
        The reasons of failed runs, by their index.
    """
    paths = [make() for make in folders]
    active = dict(enumerate(_submit(executor, paths, device)))
    failures: dict[int, str] = {}
    for number, job in active.items():
        progress.run_started(number, paths[number], f"submitted as job {job.job_id}")
    try:
        while active:
            for number in [number for number, job in active.items() if job.done()]:
                # The job's result would be a pickle; read the run's folder instead.
                text = active.pop(number).stderr() or ""
                reason = failure_reason(paths[number], text, None)
                if reason:
                    failures[number] = reason
                progress.run_ended(number, paths[number], reason)
            progress.refresh()
            time.sleep(POLL_SECONDS[executor.cluster])
    except BaseException:
        for job in active.values():
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
                # Plain command lines, so that submitit pickles no object of Celstack.
                executor.submit(CommandFunction([*share, *_command(folder, device)], False))
                for folder in folders
            ]
    except Exception as error:
        raise CelstackError(
            f"--launcher {executor.cluster}: nothing was submitted: {describe_error(error)}"
        ) from error


def _command(folder: Path, device: str) -> list[str]:
    """Return the command that starts or resumes a run."""
    options = ["--quiet", "--device", device, "--resume", str(folder.resolve())]
    return [sys.executable, "-P", "-c", CODE, *options]
