"""How long the command line takes to answer, against ``python -c pass`` in the same run.

    python tests/benchmarks/startup.py [rounds]

Commands take turns, so that a busy moment of the machine hits all of them, and the best
of all rounds counts. Exits with 1 if a command takes more than ten times as long.
"""

import subprocess
import sys
import sysconfig
import time
from pathlib import Path

LIMIT = 10.0
SCRIPTS = Path(sysconfig.get_path("scripts"))
MISTAKE = ["smoke.toml", "--set", "selector.use=greddy", "--set", "sprites.count=0"]
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "run-recipe --help": [str(SCRIPTS / "run-recipe"), "--help"],
    "run-recipe, with mistakes": [str(SCRIPTS / "run-recipe"), *MISTAKE],
    "celstack --help": [str(SCRIPTS / "celstack"), "--help"],
    "celstack plugins": [str(SCRIPTS / "celstack"), "plugins"],
    "celstack recipes": [str(SCRIPTS / "celstack"), "recipes"],
    "celstack check, with mistakes": [str(SCRIPTS / "celstack"), "check", *MISTAKE],
}


def measure(rounds: int) -> dict[str, float]:
    """Return the best wall time of every command, in seconds."""
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            started = time.perf_counter()
            subprocess.run(command, capture_output=True, check=False)
            best[name] = min(best[name], time.perf_counter() - started)
    return best


def main() -> None:
    """Print a table and judge it."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    best = measure(rounds)
    base = best["python -c pass"]
    print(f"best of {rounds}, limit {LIMIT:g} times `python -c pass`")
    for name, seconds in best.items():
        print(f"{name:<30} {1000 * seconds:7.1f} ms {seconds / base:6.2f}")
    if max(best.values()) > LIMIT * base:
        sys.exit("too slow")


if __name__ == "__main__":
    main()
