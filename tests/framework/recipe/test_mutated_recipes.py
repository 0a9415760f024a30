"""Recipes mutated at random are accepted or refused with a located message: nothing else."""

from contextlib import suppress

import pytest
import tomli_w
from fuzzed_recipes import assembled, check_lasting, mutated_recipe, mutated_table, resolved
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from celstack.errors import CelstackError


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Where all of the mutated recipes are written, one after the other."""
    return tmp_path_factory.mktemp("mutated") / "my.toml"


# One path serves all examples: each is written anew.
patient = {"deadline": None, "suppress_health_check": list(HealthCheck)}
# Its numbers are Hypothesis's own choice, so that it finds the plainest recipe that fails.
randoms = st.randoms(use_true_random=False)


@settings(max_examples=1000, **patient)
@given(random=randoms)
def test_a_mutated_table_is_accepted_or_refused_with_places(path, random):
    with suppress(CelstackError):
        check_lasting(path, resolved(path, tomli_w.dumps(mutated_table(random))))


@settings(max_examples=1000, **patient)
@given(random=randoms)
def test_a_mutated_text_is_accepted_or_refused_with_places(path, random):
    with suppress(CelstackError):
        resolved(path, mutated_recipe(random))


@settings(max_examples=100, **patient)
@given(random=randoms)
def test_a_mutated_recipe_that_resolves_is_assembled_or_refused_with_places(path, random):
    with suppress(CelstackError):
        assembled(path, resolved(path, tomli_w.dumps(mutated_table(random))))
