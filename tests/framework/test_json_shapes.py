import pytest

from celstack.json_checks import has_shape


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (1, int),
        (1, float),
        (None, float | None),
        (["a"], list[str]),
        ([], list[str]),
        ({"a": {"b": 1.5}}, dict[str, dict[str, float]]),
        ({"a": 1, "more": "x"}, {"a": int, "b": str}),
        ([[1], []], list[list[int]]),
    ],
)
def test_what_fits(value, shape):
    assert has_shape(value, shape)


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (True, int),
        (1.0, int),
        ("1", float),
        (float("inf"), float),
        (float("nan"), float),
        (10**400, float),
        (None, float),
        ("ab", list[str]),
        ([1], list[str]),
        ([{}], dict[str, float]),
        ({"a": {"b": "c"}}, dict[str, dict[str, float]]),
        ({"a": "1"}, {"a": int}),
        ([("a", 1)], {"a": int}),
        ("a", {"a": int}),
    ],
)
def test_what_does_not(value, shape):
    assert not has_shape(value, shape)
