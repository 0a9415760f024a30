import datetime

import pytest

from celstack.errors import Problem, RecipeError
from celstack.keypath import quote_key
from celstack.text import describe_error, did_you_mean, format_value


def test_a_single_problem_takes_a_single_line():
    error = RecipeError("my.toml", [Problem("seed", "is missing")])

    assert str(error) == "my.toml: seed: is missing"


def test_several_problems_are_counted_and_listed():
    error = RecipeError("my.toml", [Problem("seed", "is missing"), Problem("a[1]", "is odd")])

    assert str(error) == "my.toml: 2 problems\n  seed: is missing\n  a[1]: is odd"


def test_the_nearest_name_is_suggested():
    assert did_you_mean("positon", ["color", "position"]) == "; did you mean 'position'?"


def test_nothing_is_suggested_where_nothing_is_near():
    assert did_you_mean("xyz", ["color", "position"]) == ""


def test_an_exception_of_many_lines_is_told_in_one():
    assert describe_error(ValueError("first\n  second")) == "ValueError: first second"


def test_a_message_that_quotes_a_whole_file_is_cut():
    assert describe_error(ValueError("x" * 999)) == "ValueError: " + "x" * 397 + "..."


def test_what_a_terminal_would_obey_is_spelt_out():
    assert describe_error(ValueError("\x1b[31mred\a")) == r"ValueError: \x1b[31mred\x07"


def test_an_exception_without_words_is_told_by_its_name():
    assert describe_error(KeyError()) == "KeyError"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        ("a\nb", r"'a\nb'"),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        pytest.param(16**5000, "a value too large to show", id="5000 digits"),
        ("x" * 100, "'" + "x" * 56 + "..."),
    ],
)
def test_values_are_shown_much_as_toml_spells_them(value, text):
    assert format_value(value) == text


def test_a_value_nested_beyond_all_measure_can_still_be_spoken_of():
    deep = []
    for _ in range(100_000):
        deep = [deep]

    assert format_value(deep) == "a value too large to show"


@pytest.mark.parametrize(
    ("key", "text"),
    [("mask_sigma", "mask_sigma"), ("a-b", "a-b"), ("a b", "'a b'"), ("", "''")],
)
def test_a_key_that_is_no_bare_word_is_quoted(key, text):
    assert quote_key(key) == text
