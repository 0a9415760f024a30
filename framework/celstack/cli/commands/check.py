"""`celstack check`: validate a recipe without running it."""

from __future__ import annotations

import argparse

from celstack.cli.commands.run import add_overrides


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recipe", help="path of a recipe, or name of a bundled one")
    add_overrides(parser)


def main(arguments: argparse.Namespace) -> None:
    """Resolve and assemble the recipe, which raises on mistakes."""
    from celstack.recipe.load import read_recipe
    from celstack.recipe.resolve import resolve
    from celstack.registry.catalog import Catalog

    recipe = read_recipe(arguments.recipe, arguments.set)
    catalog = Catalog()
    resolved = resolve(recipe, catalog)

    from celstack.cli.output import print_line
    from celstack.recipe.build import assemble

    assemble(resolved, catalog)
    print_line(f"{arguments.recipe}: no mistakes found")
