"""Recipes, mutated as tables and as texts."""

import tomllib

import tomli_w
from mutations import Values, copied, mutated_nest, mutated_text
from trial import Kind

from celstack.errors import CelstackError, RecipeError
from celstack.recipe.build import assemble
from celstack.recipe.load import bundled_folder, read_recipe
from celstack.recipe.resolve import resolve
from celstack.registry.catalog import Catalog

CATALOG = Catalog()
SMOKE = tomllib.loads((bundled_folder() / "smoke.toml").read_text(encoding="utf-8"))
TEXT = tomli_w.dumps(SMOKE)
NAMES = sorted({plugin.name for plugin in CATALOG.plugins})
KEYS = sorted(
    {*SMOKE, "use", "extends", "steps", "count", "size", "seed", "", "a b", "a.b", "é\n"}
)
VALUES = Values([*NAMES, "train", "smoke", "my.toml"], KEYS, dates=True)
PIECES = ['"', "=", "[", "]", "{", "\n", ".", *NAMES]
PLACES = ("extends", "not valid TOML", "not a text file in UTF-8")


def mutated_table(random):
    return mutated_nest(random, copied(SMOKE), VALUES)


def mutated_recipe(random):
    return mutated_text(random, TEXT, PIECES)


def resolved(path, text):
    """Resolve a recipe, or raise what refuses it, once its message is known to have a place."""
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        return resolve(read_recipe(str(path)), CATALOG)
    except RecipeError as error:
        check_located(error, str(path))
        raise
    except CelstackError as error:
        check_located_in_file(error)
        raise


def assembled(path, recipe):
    """Put the parts of a resolved recipe together, or raise, likewise."""
    try:
        return assemble(recipe, CATALOG)
    except RecipeError as error:
        check_located(error, str(path))
        raise


def check_lasting(path, recipe):
    """Demand that a recipe, written in full, is read again as the same."""
    try:
        again = resolved(path, tomli_w.dumps(recipe.as_table()))
    except CelstackError as error:
        raise AssertionError(f"refused when written in full: {error}") from error
    assert again.as_table() == recipe.as_table()


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
    assert where in PLACES
    assert (
        where != "not valid TOML" or "at line" in line or "nested" in line or "digits" in line
    )


class RecipeTables(Kind):
    """What is accepted means the same when it is written in full and read again."""

    def attempt(self, random):
        path = self.folder / "my.toml"
        recipe = resolved(path, tomli_w.dumps(mutated_table(random)))
        check_lasting(path, recipe)
        assembled(path, recipe)


class RecipeTexts(Kind):
    """Not all that is accepted is assembled: parts are the tables' matter."""

    def attempt(self, random):
        resolved(self.folder / "my.toml", mutated_recipe(random))
