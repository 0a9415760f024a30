"""Whether mutated inputs are all handled, or refused in clear words.

    python tests/benchmarks/fuzz.py [COUNT] [--only KIND] [--seed N]
    python tests/benchmarks/fuzz.py --only KIND --again SEED

Tries so many inputs of each kind (10,000), in child processes whose memory is bounded: a crash
is seen and costs one input. A fault is anything else than an answer or one clear line: another
exception, a crash, ten busy seconds, a minute of silence, a file written elsewhere than it
should be, another program started. Each comes with its seed; ``--again`` shows it in full.
Exits with 1 if there are any. Linux and macOS.
"""

import argparse
import logging
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "naive"), str(TESTS / "fuzzing")]

import torch  # noqa: E402
from fuzzed import KINDS  # noqa: E402
from trial import judge  # noqa: E402

CHUNK = 500
"""Inputs that one child tries."""
SILENCE = 60.0
MEMORY = 4 * 2**30
"""Bytes of addresses that a child may have beyond those it starts with."""


def quiet():
    """What readers log and warn of is not what is looked for here."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def bound_memory():
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))


def told(error):
    """Tell a fault in a line: what it is, and where."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(where.filename).name}:{where.lineno}"
    return f"{type(error).__name__} at {place}: {' '.join(str(error).split())[:200]}"


def child(kind, seeds, pipe):
    """Try inputs one after another, and write a line about each."""
    quiet()
    if Path("/proc/self/statm").exists():
        bound_memory()
    for seed in seeds:
        try:
            verdict = judge(kind, seed)
        except BaseException as error:
            verdict = f"fault {told(error)}"
        os.write(pipe, f"{verdict}\n".encode("utf-8", "replace"))


def try_chunk(kind, seeds):
    """Return a verdict for each seed; the last is about a crash or a hang, if there was one."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if not process:
        os.close(reading)
        child(kind, seeds, writing)
        os._exit(0)
    os.close(writing)
    heard, silent = b"", False
    while True:
        ready, _, _ = select.select([reading], [], [], SILENCE)
        if not ready:
            silent = True
            os.kill(process, signal.SIGKILL)
        if not (part := os.read(reading, 2**16)):
            break
        heard += part
    os.close(reading)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    verdicts = heard.decode("utf-8", "replace").splitlines()
    if len(verdicts) < len(seeds):
        verdicts.append("fault: silent for a minute" if silent else f"fault: crash, {code}")
    return verdicts


def fuzz(name, count, first):
    """Try so many inputs of a kind, and print what became of them; return the faults."""
    tally, faults, begin = Counter(), [], time.monotonic()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="celstack-fuzz-", dir=memory))
    try:
        kind = KINDS[name](folder)
        seed, end = first, first + count
        while seed < end:
            verdicts = try_chunk(kind, range(seed, min(end, seed + CHUNK)))
            for number, verdict in enumerate(verdicts, seed):
                tally[verdict.split()[0].rstrip(":")] += 1
                if verdict.startswith("fault"):
                    faults.append(f"{name}, seed {number}: {verdict.removeprefix('fault ')}")
            seed += len(verdicts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - begin
    figures = [tally["handled"], tally["refused"], tally["fault"]]
    print(f"{name:<20} {count:>7} " + " ".join(f"{n:>9}" for n in figures), end="")
    print(f" {seconds:>8.0f} s", flush=True)
    return faults


def again(name, seed):
    """Try one input in this process, and show all that it does."""
    with tempfile.TemporaryDirectory() as folder:
        print(judge(KINDS[name](Path(folder)), seed))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", nargs="?", type=int, default=10_000)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--seed", type=int, default=0, help="of the first input")
    parser.add_argument("--again", type=int, metavar="SEED")
    asked = parser.parse_args()
    if asked.again is not None:
        again(asked.only, asked.again)
        return
    print(f"{'kind':<20} {'inputs':>7} {'handled':>9} {'refused':>9} {'faults':>9}")
    names = [asked.only] if asked.only else list(KINDS)
    faults = [fault for name in names for fault in fuzz(name, asked.count, asked.seed)]
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
