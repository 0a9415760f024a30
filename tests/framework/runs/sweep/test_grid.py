"""The grid: what varies, and all combinations."""

import pytest

from celstack.errors import CelstackError, Problem
from celstack.recipe.overrides import parse
from celstack.runs.sweep.grid import Axis, combine, format_cell, read_grid, split_values


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("1,3", ["1", "3"]),
        ("1 , 3", ["1", "3"]),
        ("greedy", ["greedy"]),
        ("[24,24],[28,28]", ["[24,24]", "[28,28]"]),
        ("{use='a',x=[1,2]},b", ["{use='a',x=[1,2]}", "b"]),
        ("'a,b',c", ["'a,b'", "c"]),
        (r'"a\",b",c', [r'"a\",b"', "c"]),
        (r"'a\',b", [r"'a\'", "b"]),
        ('["a,]",1],2', ['["a,]",1]', "2"]),
        ("1,,2", ["1", "", "2"]),
        ("", [""]),
    ],
)
def test_commas_part_values_but_not_inside_of_brackets_and_quotes(text, pieces):
    assert split_values(text) == pieces


def axes_of(*texts, fixed=()):
    return read_grid(texts, [parse(text) for text in fixed])


def values(axis):
    return [one.value for one in axis.values]


def test_values_are_those_of_toml_and_bare_words():
    (axis,) = axes_of("sprites.size=[24, 24],[28,28]")
    (words,) = axes_of("selector.use=greedy,exhaustive")

    assert (axis.path, values(axis)) == ("sprites.size", [[24, 24], [28, 28]])
    assert values(words) == ["greedy", "exhaustive"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("seed", "--grid seed: expected path=value,value,... such as selector.sweeps=1,3"),
        ("seed=", "--grid seed=: a value is missing; separate values with single commas"),
        ("seed=1,", "--grid seed=1,: a value is missing; separate values with single commas"),
        ("seed=1,2,1", "--grid seed=1,2,1: 1 is given twice"),
        ("sizes=[1,[2]", "--grid sizes=[1,[2]: what follows '=' is not a value of TOML"),
        ("extends=a,b", "--grid extends=a: 'extends' cannot be overridden"),
    ],
)
def test_a_mistake_takes_the_place_of_its_axis(text, complaint):
    assert axes_of(text) == [Problem("", complaint)]


def test_a_path_that_is_none_is_a_mistake():
    (problem,) = axes_of("a b=1,2")

    assert str(problem).startswith("--grid a b=1: write path=value")


def test_one_place_cannot_be_said_twice():
    first, second = axes_of("seed=1,2", "seed=3")
    (fixed,) = axes_of("seed=1,2", fixed=["seed=5"])

    assert isinstance(first, Axis)
    assert str(second) == "--grid seed=3: seed is already set by --grid"
    assert str(fixed) == "--grid seed=1,2: seed is already set by --set"


def test_the_last_axis_varies_fastest():
    cells = combine(axes_of("a=1,2", "b=x,y"))

    assert [format_cell(cell) for cell in cells] == [
        "a = 1, b = 'x'",
        "a = 1, b = 'y'",
        "a = 2, b = 'x'",
        "a = 2, b = 'y'",
    ]


def test_too_many_runs_are_refused():
    many = ",".join(map(str, range(101)))

    with pytest.raises(CelstackError, match="makes 10,201 runs; at most 1,000 are allowed"):
        combine(axes_of(f"a={many}", f"b={many}"))
