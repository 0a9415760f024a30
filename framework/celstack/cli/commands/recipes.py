"""`celstack recipes`: list the bundled recipes."""

from __future__ import annotations

import argparse

from celstack.recipe.load import bundled_folder, bundled_names, read_recipe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take nothing."""


def main(arguments: argparse.Namespace) -> None:  # noqa: ARG001
    """Print each recipe with what it says of itself."""
    from celstack.cli.output import say

    names = bundled_names()
    width = max(map(len, names))
    for name in names:
        table = read_recipe(str(bundled_folder() / name)).table
        say(f"{name:<{width}}  {table.get('description', '')}".rstrip())
