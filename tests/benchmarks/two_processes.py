"""Whether a run of two processes survives the loss of one: it ends in a line, and goes on.

    python tests/benchmarks/two_processes.py [COUNT] [--seed N]

Starts `run-recipe --devices 2` so many times (20). At a random moment one of the two processes
is killed (SIGKILL), or stopped (SIGSTOP), or the run is told to stop (SIGTERM). It must end
within seconds, with the exit code and the one line that say what happened, and no process may
be left; resumed with two processes, it must end with the weights, the optimizer, the random
state, the log and the scores of a run in peace, to the last bit. Exits with 1 if anything else
happens. Linux.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "killing")]

from forked import Fault, state_of  # noqa: E402
from leftovers import difference, left_by_run  # noqa: E402

RECIPE = """\
dataset = { use = "tetrominoes", count = 31, test_count = 4, per_image = 1, side = 24 }
sprites = { use = "pixels", count = 3, size = [12, 12], jitter = 0.1 }
compositor = { use = "ordered", layers = 1 }
selector = "greedy"
predictor = { use = "network", encoder = { use = "strided", width = 4 } }
transforms.layer = ["color", "position"]
metrics = ["mse"]
evaluation.images = 4
training = { batch_size = 6, reassign_every = 7, checkpoint_every = 3 }
stages = [{ steps = 20, freeze_sprites = true }, { steps = 100 }]
"""
STEPS = 120
CODE = "from celstack.cli import run_recipe; run_recipe()"
OPTIONS = ["--devices", "2", "--timeout", "5", "--quiet"]
LIMIT = 240.0
ENDS = {
    signal.SIGKILL: (1, r"process {rank} of 2 \(PID {victim}\) is gone; progress saved\."),
    signal.SIGSTOP: (1, r"process {rank} of 2 \(PID {victim}\) is stopped; progress saved\."),
    signal.SIGTERM: (143, r"Stopped by SIGTERM; progress saved\."),
}
"""What is sent, the exit code, and the line about it."""


def begin(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *map(str, arguments), *OPTIONS],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def end(process):
    """Wait for the end; return the exit code and what was said on standard error."""
    try:
        _, said = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Fault(f"still running after {LIMIT:.0f} seconds") from None
    return process.returncode, said


def children(process):
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return sorted(map(int, found.split()))


def folder_at(out, step, process):
    """Wait until a run has logged a step; return its folder, or None if it has ended."""
    until = time.monotonic() + LIMIT
    while time.monotonic() < until and process.poll() is None:
        for log in out.glob("*/*/log.jsonl"):
            if (
                f'"step": {step},' in log.read_text()
                and (log.parent / "checkpoint.pt").exists()
            ):
                return log.parent
        time.sleep(0.005)
    return None


def trial(recipe, out, number, random, expected):
    """Lose a process at a random step; return whether it was in time, or raise Fault."""
    process = begin(recipe, "--out", out)
    folder = folder_at(out, random.randint(1, STEPS - 20), process)
    ranks = children(process) if folder and process.poll() is None else []
    if len(ranks) < 2:
        end(process)
        return False
    rank = random.randrange(2)
    os.kill(process.pid if number == signal.SIGTERM else ranks[rank], number)
    code, said = end(process)
    wanted, line = ENDS[number]
    line = line.format(rank=rank, victim=ranks[rank])
    resume = rf"Resume with: run-recipe --resume {re.escape(str(folder))} --devices 2\n"
    if code != wanted or not re.fullmatch(f"celstack: {line} {resume}", said):
        raise Fault(f"exit code {code}, said {said!r}")
    left = [one for one in ranks if Path(f"/proc/{one}").exists() and state_of(one) != "Z"]
    if left:
        raise Fault(f"processes are left: {left}")
    code, said = end(begin("--resume", folder))
    if code or said:
        raise Fault(f"resumed: exit code {code}, said {said!r}")
    if text := difference(left_by_run(folder), expected):
        raise Fault(f"not the same in {text}")
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", nargs="?", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    tally, faults, tries = dict.fromkeys(ENDS, 0), [], 0
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        base = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(base / "cache")
        recipe = base / "tiny.toml"
        recipe.write_text(RECIPE)
        code, said = end(begin(recipe, "--out", base / "whole"))
        if code:
            sys.exit(f"fails when it is left alone: {said}")
        (whole,) = base.glob("whole/*/*")
        expected = left_by_run(whole)
        while sum(tally.values()) < asked.count:
            tries += 1
            number, random = [*ENDS][tries % len(ENDS)], Random(f"{asked.seed} {tries}")
            try:
                hit = trial(recipe, base / f"{tries}", number, random, expected)
            except Fault as error:
                hit = True
                faults.append(f"trial {tries}, {number.name}: {error}")
            tally[number] += hit
    for number, times in tally.items():
        print(f"{number.name}: {times} times")
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
