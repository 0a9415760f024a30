import pytest

from celstack.errors import CelstackError
from celstack.recipe.load import bundled_names, find_recipe, read_recipe


def table(path, *overrides):
    return read_recipe(path, overrides).table


def refusal(path, *overrides):
    with pytest.raises(CelstackError) as refused:
        read_recipe(path, overrides)
    return str(refused.value)


# Finding.


def test_a_recipe_is_found_by_its_path(write):
    path = write("seed = 1")

    assert table(path) == {"seed": 1}


def test_a_recipe_in_the_current_folder_comes_before_the_bundled_one(
    write, tmp_path, monkeypatch
):
    write("seed = 1", "smoke.toml")
    monkeypatch.chdir(tmp_path)

    assert table("smoke.toml") == {"seed": 1}


def test_a_bundled_recipe_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert find_recipe("smoke.toml").is_file()


def test_the_suffix_may_be_left_out():
    assert find_recipe("smoke") == find_recipe("smoke.toml")


@pytest.mark.parametrize("name", ["smok.toml", "smok"])
def test_a_missing_recipe_is_told_with_the_nearest_bundled_one(name):
    message = refusal(name)

    assert message.startswith(f"{name}: no such recipe, here or among the bundled ones")
    assert "did you mean 'smoke" in message


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", ""])
def test_a_name_no_file_can_have_is_a_missing_recipe(name):
    assert "recipe" in refusal(name)


def test_a_folder_is_no_recipe(tmp_path):
    assert refusal(str(tmp_path)) == f"{tmp_path}: is a folder, not a recipe"


def test_all_bundled_recipes_are_listed():
    assert "smoke.toml" in bundled_names()


# Syntax.


def test_bad_syntax_is_told_with_line_and_column(write):
    message = refusal(write("seed = 1\nworse = = 2"))

    assert message.startswith("my.toml: not valid TOML: ")
    assert message.endswith("(at line 2, column 9)")


def test_a_file_that_ends_too_soon_is_told_with_line_and_column(write):
    assert refusal(write("seed = 1\nworse = ")).endswith("(at line 2, column 9)")


def test_an_integer_of_too_many_digits_is_no_traceback(write):
    assert "not valid TOML" in refusal(write(f"seed = {'1' * 5000}"))


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "image.toml"
    path.write_bytes(b"\x89PNG\xff")

    assert refusal(str(path)).startswith("image.toml: not a text file in UTF-8")


def test_the_mark_with_which_some_editors_begin_a_file_is_passed_over(tmp_path):
    path = tmp_path / "my.toml"
    path.write_bytes(b"\xef\xbb\xbfseed = 1\r\n")

    assert table(str(path)) == {"seed": 1}


@pytest.mark.parametrize("text", ["a = " + "[" * 3000, ".".join("a" * 3000) + " = 1"])
def test_what_is_nested_beyond_all_measure_is_refused(write, text):
    assert "nested" in refusal(write(text))


# Extending.


def test_a_recipe_says_only_what_differs(write):
    write("seed = 1\ndescription = 'base'", "base.toml")

    assert table(write("extends = 'base.toml'\nseed = 2")) == {
        "seed": 2,
        "description": "base",
    }


def test_what_is_extended_is_looked_for_beside_the_recipe(write, tmp_path, monkeypatch):
    write("seed = 1", "base.toml")
    path = write("extends = '../base.toml'", "inner/my.toml")
    monkeypatch.chdir("/")

    assert table(path) == {"seed": 1}


def test_extending_goes_through_several_levels(write):
    write("seed = 1\ntraining.workers = 1\ndescription = 'a'", "a.toml")
    write("extends = 'a.toml'\nseed = 2\ntraining.batch_size = 2", "b.toml")

    assert table(write("extends = 'b.toml'\nseed = 3")) == {
        "seed": 3,
        "training": {"workers": 1, "batch_size": 2},
        "description": "a",
    }


def test_a_bundled_recipe_can_be_extended_from_anywhere(write):
    assert table(write("extends = 'smoke'"))["dataset"]["use"] == "tetrominoes"


def test_a_recipe_beside_it_comes_before_the_bundled_one(write):
    write("seed = 1", "smoke.toml")

    assert table(write("extends = 'smoke.toml'")) == {"seed": 1}


def test_published_figures_are_inherited(write):
    write("[published.them]\nari = 1.0", "base.toml")

    assert table(write("extends = 'base'\nseed = 1"))["published"] == {"them": {"ari": 1.0}}


def test_a_recipe_with_published_figures_of_its_own_inherits_none(write):
    write("[published.them]\nari = 1.0\n[published.others]\nari = 2.0", "base.toml")
    path = write("extends = 'base'\n[published.them]\nmiou = 3.0")

    assert table(path)["published"] == {"them": {"miou": 3.0}}


def test_a_cycle_is_refused_with_the_way_around_it(write):
    write("extends = 'b.toml'", "a.toml")
    path = write("extends = 'a.toml'", "b.toml")

    assert refusal(path) == "a.toml: extends: a cycle: b.toml -> a.toml -> b.toml"


def test_a_recipe_cannot_extend_itself(write):
    assert "a cycle: my.toml -> my.toml" in refusal(write("extends = 'my.toml'"))


def test_extending_what_is_not_there_is_refused(write):
    message = refusal(write("extends = 'smokey.toml'"))

    assert message == (
        "my.toml: extends: there is no 'smokey.toml', neither beside it "
        "nor among the bundled recipes; did you mean 'smoke.toml'?"
    )


@pytest.mark.parametrize("parent", ["3", "['a']", "{}", "true"])
def test_extends_must_be_a_name(write, parent):
    assert "extends: must be the name of a recipe" in refusal(write(f"extends = {parent}"))


@pytest.mark.parametrize("parent", ['""', f'"{"x" * 5000}"', r'"a\u0000b"', '"."'])
def test_extending_a_name_no_file_can_have_is_refused(write, parent):
    assert "extends: there is no" in refusal(write(f"extends = {parent}"))


def test_a_mistake_in_what_is_extended_names_the_file_it_is_in(write):
    write("seed = ", "base.toml")

    assert refusal(write("extends = 'base.toml'")).startswith("base.toml: not valid TOML")


@pytest.mark.parametrize(
    ("below", "above", "merged"),
    [
        ("{use='a', x=1}", "{use='a', y=2}", {"use": "a", "x": 1, "y": 2}),
        ("{use='a', x=1}", "{y=2}", {"use": "a", "x": 1, "y": 2}),
        ("{use='a', x=1}", "{use='b', y=2}", {"use": "b", "y": 2}),
        ("{use='a', x=1}", "'a'", {"use": "a", "x": 1}),
        ("{use='a', x=1}", "'b'", {"use": "b"}),
        ("'a'", "{y=2}", {"use": "a", "y": 2}),
        ("'a'", "{use='b', y=2}", {"use": "b", "y": 2}),
        ("'a'", "'b'", "b"),
        ("{x=1}", "{use='b'}", {"use": "b", "x": 1}),
        ("['a', 'b']", "['c']", ["c"]),
        ("[{use='a'}]", "[{y=2}]", [{"y": 2}]),
        ("{x={use='a', n=1}}", "{x={use='a', m=1}}", {"x": {"use": "a", "n": 1, "m": 1}}),
        ("{x={use='a', n=1}}", "{x={use='b'}}", {"x": {"use": "b"}}),
        ("3", "{y=2}", {"y": 2}),
        ("{x=1}", "3", 3),
    ],
)
def test_how_a_table_is_laid_over_another(write, below, above, merged):
    write(f"part = {below}", "base.toml")

    assert table(write(f"extends = 'base.toml'\npart = {above}"))["part"] == merged
