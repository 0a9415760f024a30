"""Whether kills cost nothing: what is killed and resumed ends as if nothing had happened.

    python tests/benchmarks/kills.py [COUNT] [--only SCENARIO] [--seed N] [--keep FOLDER]

Kills so many times in each scenario (25, which makes 225): runs with a network, by matching,
by fitting, with a handover; while they are evaluated, and while pages are written; runs of
several seeds; sweeps; datasets that are being made. At random moments, by SIGKILL, SIGTERM or
SIGINT, also while what was killed goes on. Weights, optimizer, random state, log, scores and
pictures are compared with those of a run in peace, to the last bit. A fault is any difference,
any other exit code than that of the signal, a traceback, a file left over. Exits with 1 if
there are any; ``--keep`` leaves the folders of faulty trials. Linux.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from random import Random

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "killing")]
os.environ["OMP_NUM_THREADS"] = "1"

from forked import Fault, warm_up  # noqa: E402
from scenarios import SCENARIOS  # noqa: E402


def attack(name, count, seed, base):
    """Kill so many times in a scenario; print a line, and return the faults."""
    began, faults, kills, trials = time.monotonic(), [], 0, 0
    folder = base / name.replace(" ", "-")
    scenario = SCENARIOS[name](name, folder)
    while kills < count:
        trials += 1
        random, read = Random(f"{name} {seed} {trials}"), size_of(scenario.log)
        try:
            kills += scenario.trial(random)
            said = scenario.log.read_text("utf-8", "replace")[read:]
            if "Traceback" in said:
                raise Fault(f"a traceback: {said.splitlines()[-1]}")
        except Fault as error:
            kills += 1
            faults.append(f"{name}, trial {trials}: {error}")
        else:
            shutil.rmtree(folder / f"{scenario.number}", ignore_errors=True)
    seconds = time.monotonic() - began
    print(f"{name:<14} {trials:>7} {kills:>7} {len(faults):>7} {seconds:>8.0f} s", flush=True)
    return faults


def size_of(path):
    return len(path.read_text("utf-8", "replace")) if path.exists() else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", nargs="?", type=int, default=25)
    parser.add_argument("--only", choices=SCENARIOS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    asked = parser.parse_args()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    base = asked.keep or Path(tempfile.mkdtemp(prefix="celstack-kills-", dir=memory))
    base.mkdir(parents=True, exist_ok=True)
    # What runs make on the way, such as images, is made once.
    os.environ["XDG_CACHE_HOME"] = str(base / "cache")
    warm_up()
    print(f"{'scenario':<14} {'trials':>7} {'kills':>7} {'faults':>7}")
    names = [asked.only] if asked.only else list(SCENARIOS)
    try:
        faults = [one for name in names for one in attack(name, asked.count, asked.seed, base)]
    finally:
        if not asked.keep:
            shutil.rmtree(base, ignore_errors=True)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
