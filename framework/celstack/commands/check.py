"""`celstack check`: find the mistakes of a recipe without running it."""

from __future__ import annotations

import argparse

from celstack.commands.run import add_overrides


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("recipe", help="a path, or the name of a bundled recipe")
    add_overrides(parser)


def main(arguments: argparse.Namespace) -> None:
    """Resolve and assemble, and say that all is well."""
    from celstack.catalog import Catalog
    from celstack.recipe import read_recipe
    from celstack.resolve import resolve

    recipe = read_recipe(arguments.recipe, arguments.set)
    catalog = Catalog()
    resolved = resolve(recipe, catalog)

    from celstack.assemble import assemble
    from celstack.cli import say

    assemble(resolved, catalog)
    say(f"{arguments.recipe}: no mistakes found")
