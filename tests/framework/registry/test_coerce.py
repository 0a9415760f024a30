from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import pytest
from annotated_types import Ge, Gt, Interval, Lt

from celstack.registry.coerce import CoercionError, coerce, describe

Pair = tuple[Annotated[int, Ge(1)], Annotated[int, Ge(1)]]


@pytest.mark.parametrize(
    ("value", "annotation", "fitted"),
    [
        (3, int, 3),
        (3, float, 3.0),
        (True, bool, True),
        ("a", str, "a"),
        ("a/b", Path, Path("a/b")),
        ([2, 3], tuple[int, int], (2, 3)),
        ([2, 3], tuple[int, ...], (2, 3)),
        ([2, 3], tuple, (2, 3)),
        ((2, 3), list[int], [2, 3]),
        ({"a": 1}, dict[str, float], {"a": 1.0}),
        (None, int | None, None),
        (4, Annotated[int, Ge(4)] | None, 4),
        ("fast", Literal["fast", "slow"], "fast"),
        ([1], list[int] | int, [1]),
        (1, list[int] | int, 1),
        ({"any": ["thing"]}, Any, {"any": ["thing"]}),
        ([1, 2], Sequence[int], [1, 2]),
        (len, Callable[[str], int], len),
        (1, TypeVar("T"), 1),
    ],
)
def test_what_fits_comes_back_as_the_annotated_type(value, annotation, fitted):
    found = coerce(value, annotation)

    assert found == fitted
    assert type(found) is type(fitted)


@pytest.mark.parametrize(
    ("value", "annotation", "text"),
    [
        ("3", int, "must be an integer, not '3'"),
        (3.0, int, "must be an integer, not 3.0"),
        (True, int, "must be an integer, not true"),
        (True, float, "must be a number, not true"),
        (1, bool, "must be true or false, not 1"),
        (1, str, "must be a string, not 1"),
        (1, Path, "must be a path, not 1"),
        (0, Annotated[int, Ge(1)], "must be an integer of at least 1, not 0"),
        (0, Annotated[float, Gt(0)], "must be a number of more than 0, not 0.0"),
        (9, Annotated[int, Lt(9)], "must be an integer of less than 9, not 9"),
        (
            2.0,
            Annotated[float, Interval(ge=0, le=1)],
            "must be a number of at least 0 and at most 1, not 2.0",
        ),
        (
            -1,
            Annotated[int, Interval(ge=0, lt=4294967296)],
            "must be an integer of at least 0 and less than 4294967296, not -1",
        ),
        (float("nan"), float, "must be a finite number, not nan"),
        (float("inf"), float, "must be a finite number, not inf"),
        (2**63, int, "must be an integer of at most 9223372036854775807"),
        pytest.param(
            16**5000,
            float,
            "must be a finite number, not a value too large to show",
            id="5000 digits",
        ),
        ([2], Pair, "must be a list of 2, each an integer of at least 1, not [2]"),
        ("24", Pair | None, "must be a list of 2, each an integer of at least 1, not '24'"),
        ("quick", Literal["fast", 2], "must be 'fast' or 2, not 'quick'"),
        (True, Literal[1], "must be 1, not true"),
        ("a", list[int], "must be a list, each an integer, not 'a'"),
        ("a", dict[str, int], "must be a table, each value an integer, not 'a'"),
        (3, Sequence[int], "must be Sequence, not 3"),
        (3, Callable[[str], int], "must be Callable, not 3"),
    ],
)
def test_what_does_not_fit_is_told_with_what_would(value, annotation, text):
    with pytest.raises(CoercionError) as error:
        coerce(value, annotation)

    assert error.value.text == text


@pytest.mark.parametrize(
    ("value", "annotation", "place"),
    [
        ([1, "b"], list[int], "[1]"),
        ([24, 0], Pair | None, "[1]"),
        ({"a": {"b c": "d"}}, dict[str, dict[str, int]], ".a.'b c'"),
        ([[1], [2, "x"]], list[list[int]], "[1][1]"),
    ],
)
def test_a_error_inside_is_told_with_its_place(value, annotation, place):
    with pytest.raises(CoercionError) as error:
        coerce(value, annotation)

    assert error.value.place == place


def test_a_value_that_is_long_or_has_many_lines_is_shortened_to_one():
    with pytest.raises(CoercionError) as error:
        coerce(["line\nbreak"] * 50, int)

    assert "\n" not in error.value.text
    assert len(error.value.text) < 100


def test_nothing_is_not_offered_as_a_choice_because_toml_cannot_say_it():
    assert describe(int | None) == "an integer"


def test_metadata_that_is_no_bound_is_passed_over():
    assert describe(Annotated[int, "pixels"]) == "an integer"


def test_an_interface_is_described_by_its_kind():
    encoder = type("Encoder", (), {})

    assert describe(encoder) == "an encoder"
