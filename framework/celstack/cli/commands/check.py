"""`celstack check`: find the mistakes of a recipe without running it."""

from __future__ import annotations

import argparse

from celstack.cli.commands.run import add_overrides


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("recipe", help="a path, or the name of a bundled recipe")
    add_overrides(parser)


def main(arguments: argparse.Namespace) -> None:
    """Resolve and assemble, and say that all is well."""
    from celstack.recipe.load import read_recipe
    from celstack.recipe.resolve import resolve
    from celstack.registry.catalog import Catalog

    recipe = read_recipe(arguments.recipe, arguments.set)
    catalog = Catalog()
    resolved = resolve(recipe, catalog)

    from celstack.cli.output import say
    from celstack.recipe.build import assemble

    assemble(resolved, catalog)
    say(f"{arguments.recipe}: no mistakes found")
