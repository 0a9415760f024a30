import itertools

import pytest

from celstack.errors import CelstackError
from celstack.recipe.overrides import override


def overridden(*texts, **table):
    override(table, texts)
    return table


def refusal(text, **table):
    with pytest.raises(CelstackError) as refused:
        override(table, [text])
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-1.5", -1.5),
        ("true", True),
        ("'quoted'", "quoted"),
        ("[1, 2]", [1, 2]),
        ("{use='color'}", {"use": "color"}),
        ("word", "word"),
        ("two words", "two words"),
        ("a/path.png", "a/path.png"),
        ("a=b", "a=b"),
        (" 3 ", 3),
    ],
)
def test_a_value_is_toml_and_a_bare_word_is_a_string(text, value):
    assert overridden(f"x={text}") == {"x": value}


def test_a_mistake_of_several_lines_is_told_in_one():
    line = refusal("a\nb")

    assert line.startswith("--set a\\nb: write path=value")
    assert "\n" not in line


def test_bytes_that_are_no_text_are_refused():
    assert refusal("description=\udcff").endswith("not text in UTF-8")


def test_a_path_goes_through_tables_and_makes_those_that_are_missing():
    assert overridden("a.b.c=1", a={"d": 2}) == {"a": {"b": {"c": 1}, "d": 2}}


@pytest.mark.parametrize("path", ["a[1].b", "a.1.b"])
def test_items_of_lists_go_by_index(path):
    table = overridden(f"{path}=5", a=[{"b": 1}, {"b": 2}])

    assert table == {"a": [{"b": 1}, {"b": 5}]}


def test_a_whole_item_can_be_changed():
    assert overridden("a[0]=z", a=["x", "y"]) == {"a": ["z", "y"]}


def test_a_part_written_as_a_word_can_be_given_options():
    table = overridden("selector.sweeps=3", selector="greedy")

    assert table == {"selector": {"use": "greedy", "sweeps": 3}}


def test_an_item_written_as_a_word_can_be_given_options():
    table = overridden("metrics[1].x=3", metrics=["a", "b"])

    assert table == {"metrics": ["a", {"use": "b", "x": 3}]}


@pytest.mark.parametrize("text", ["part.use=b", "part=b", "part={use='b'}"])
def test_another_use_starts_its_table_afresh(text):
    assert overridden(text, part={"use": "a", "x": 1})["part"] in ("b", {"use": "b"})


def test_the_same_use_keeps_its_options():
    assert overridden("part.use=a", part={"use": "a", "x": 1}) == {"part": {"use": "a", "x": 1}}


@pytest.mark.parametrize(
    "texts", list(itertools.permutations(["p.use=b", "p.y=2", "p.q.use=d", "p.q.z=3"]))
)
def test_the_order_of_overrides_does_not_matter(texts):
    table = overridden(*texts, p={"use": "a", "x": 1, "q": {"use": "c", "w": 0}})

    assert table == {"p": {"use": "b", "y": 2, "q": {"use": "d", "z": 3}}}


@pytest.mark.parametrize("texts", [("p.y=2", "p=b"), ("p=b", "p.y=2")])
def test_a_whole_table_comes_before_what_is_in_it(texts):
    assert overridden(*texts, p={"use": "a"}) == {"p": {"use": "b", "y": 2}}


def test_of_two_overrides_of_one_place_the_last_counts():
    assert overridden("seed=1", "seed=2") == {"seed": 2}


@pytest.mark.parametrize(
    "text", ["seed", "", "=3", "a..b=1", "a[x]=1", "a[-1]=1", "[0]=1", "a b=1", "é=1", ".a=1"]
)
def test_what_is_no_path_and_value_is_answered_with_an_example(text):
    assert refusal(text).startswith(f"--set {text}: write path=value, as in selector.sweeps=3")


@pytest.mark.parametrize("value", ["", "[1,", "{a=", "'open", '"open', "1\nb=2", "[" * 3000])
def test_what_is_no_value_is_refused(value):
    assert refusal(f"a={value}").endswith("what follows '=' is not a value of TOML")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed.x=1", "--set seed.x: seed is not a table"),
        ("seed[0]=1", "--set seed[0]: seed is not a list"),
        ("items.x=1", "--set items.x: items is not a table"),
        ("items[2]=1", "--set items[2]: items has only 2 items, counted from 0"),
        ("items[2].x=1", "--set items[2]: items has only 2 items, counted from 0"),
        ("0=1", "--set [0]: the recipe is not a list"),
    ],
)
def test_a_place_that_is_not_there_is_told_with_what_is(text, message):
    assert refusal(text, seed=0, items=["a", "b"]) == message


def test_what_a_recipe_extends_cannot_be_overridden():
    assert "'extends' cannot be overridden" in refusal("extends=smoke.toml")


def test_what_is_nested_beyond_all_measure_is_refused():
    assert "more than 50 tables deep" in refusal(".".join("a" * 3000) + "=1")


def test_a_value_nested_beyond_all_measure_is_refused():
    assert "more than 50 deep" in refusal("a=" + "[" * 60 + "]" * 60)


def test_an_integer_of_too_many_digits_is_no_traceback():
    assert overridden(f"seed={'1' * 5000}")["seed"] == "1" * 5000
