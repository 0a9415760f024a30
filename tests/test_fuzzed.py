"""A sample of what tests/benchmarks/fuzz.py tries, always the same."""

import sys
import warnings

import pytest
from fuzzed import KINDS
from trial import judge

SAMPLE = 100
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no alarm can be set there")


@pytest.mark.parametrize("name", KINDS)
def test_what_is_mutated_is_handled_or_refused_in_a_clear_line(name, tmp_path):
    kind = KINDS[name](tmp_path)
    with warnings.catch_warnings():
        # Readers warn of odd things; it is their answer that counts here.
        warnings.simplefilter("ignore")

        verdicts = {judge(kind, seed) for seed in range(SAMPLE)}

    assert verdicts == {"handled", "refused"}
