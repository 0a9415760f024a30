"""Recipes mutated at random are accepted or refused with a located message: nothing else."""

import copy
import tomllib

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from celstack.assemble import assemble
from celstack.catalog import Catalog
from celstack.errors import CelstackError, RecipeError
from celstack.recipe import bundled_folder, read_recipe
from celstack.resolve import resolve

CATALOG = Catalog()
SMOKE = tomllib.loads((bundled_folder() / "smoke.toml").read_text(encoding="utf-8"))
NAMES = sorted({plugin.name for plugin in CATALOG.plugins})
KEYS = sorted(
    {*SMOKE, "use", "extends", "steps", "count", "size", "seed", "", "a b", "a.b", "é\n"}
)

texts = st.one_of(st.sampled_from([*NAMES, "train", "smoke", "my.toml"]), st.text(max_size=20))
scalars = st.one_of(
    st.booleans(),
    st.integers(-3, 40),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.dates(),
    st.datetimes(),
    st.times(),
    texts,
)
keys = st.one_of(st.sampled_from(KEYS), st.text(max_size=5))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=6,
)


def places(value, below=()):
    """List the path of everything in a table."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        yield (*below, key)
        if isinstance(item, dict | list):
            yield from places(item, (*below, key))


def holder(table, path):
    for key in path[:-1]:
        table = table[key]
    return table


@st.composite
def mutated_tables(draw):
    table = copy.deepcopy(SMOKE)
    for _ in range(draw(st.integers(1, 4))):
        known = list(places(table))
        if not known:
            break
        path = draw(st.sampled_from(known))
        at = holder(table, path)
        act = draw(st.sampled_from(["delete", "replace", "rename", "add", "swap"]))
        if act == "delete":
            del at[path[-1]]
        elif act == "rename" and isinstance(at, dict):
            at[draw(keys)] = at.pop(path[-1])
        elif act == "add" and isinstance(at, dict):
            at[draw(keys)] = draw(values)
        elif act == "swap":
            other = draw(st.sampled_from(known))
            at[path[-1]] = copy.deepcopy(holder(table, other)[other[-1]])
        else:
            at[path[-1]] = draw(values)
    return table


@st.composite
def mutated_texts(draw):
    text = tomli_w.dumps(SMOKE)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        piece = draw(st.one_of(st.sampled_from(['"', "=", "[", "]", "{", "\n", "."]), texts))
        text = text[:start] + piece + text[end:]
    return text


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Where all of the mutated recipes are written, one after the other."""
    return tmp_path_factory.mktemp("mutated") / "my.toml"


def resolved_or_refused(path, text):
    """Resolve what is accepted; of what is refused, check that the message has a place."""
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        return resolve(read_recipe(str(path)), CATALOG)
    except RecipeError as error:
        check_located(error, str(path))
    except CelstackError as error:
        check_located_in_file(error)
    return None


def check_located(error, source):
    assert error.problems
    for problem in error.problems:
        assert problem.place
        assert problem.text
        assert len(str(problem).splitlines()) == 1
    assert str(error).startswith(source)


def check_located_in_file(error):
    (line,) = str(error).splitlines()
    name, where, _ = line.split(": ", 2)
    assert name.endswith(".toml")
    assert where in ("extends", "not valid TOML", "not a text file in UTF-8")
    assert (
        where != "not valid TOML" or "at line" in line or "nested" in line or "digits" in line
    )


# One path serves all examples: each is written anew.
patient = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=1000, **patient)
@given(table=mutated_tables())
def test_a_mutated_table_is_accepted_or_refused_with_places(path, table):
    resolved = resolved_or_refused(path, tomli_w.dumps(table))

    if resolved:
        again = resolved_or_refused(path, tomli_w.dumps(resolved.as_table()))
        assert again.as_table() == resolved.as_table()


@settings(max_examples=1000, **patient)
@given(text=mutated_texts())
def test_a_mutated_text_is_accepted_or_refused_with_places(path, text):
    resolved_or_refused(path, text)


@settings(max_examples=100, **patient)
@given(table=mutated_tables())
def test_a_mutated_recipe_that_resolves_is_assembled_or_refused_with_places(path, table):
    resolved = resolved_or_refused(path, tomli_w.dumps(table))

    if resolved:
        try:
            assemble(resolved, CATALOG)
        except RecipeError as error:
            check_located(error, str(path))
