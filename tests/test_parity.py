"""The paper's method learns in small worlds as well as the authors' implementation does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from worlds import WORLDS

ROOT = Path(__file__).parent
MARGIN = 1.25
"""One seed may be so much worse than the mean of the authors' two: these differ by more.

With the faults of 0.1.0 the letter's loss is four times the authors', and that of the signs
jumps when a transform joins.
"""
PROGRAM = """
import json, sys
sys.path[:0] = sys.argv[2:]
from parity import learn
from worlds import WORLDS
along, scores = learn(WORLDS[sys.argv[1]], seed=0)
print(json.dumps([along, scores]))
"""


def learn(name):
    """Train in a process of its own, where shapes are not checked at every call."""
    folders = [str(ROOT / "benchmarks"), str(ROOT / "parity")]
    command = [sys.executable, "-c", PROGRAM, name, *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one", "letter", "signs"])
def test_the_loss_is_at_most_the_authors(name):
    world = WORLDS[name]

    along, scores = learn(name)

    assert scores["end"] <= MARGIN * world.authors_end
    # Transforms join in between, and none of them throws the model back.
    assert along == sorted(along, reverse=True)
