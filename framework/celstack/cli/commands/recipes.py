"""`celstack recipes`: list the bundled recipes."""

from __future__ import annotations

import argparse

from celstack.recipe.load import bundled_folder, bundled_names, read_recipe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no arguments."""


def main(arguments: argparse.Namespace) -> None:  # noqa: ARG001
    """Print the name and description of each bundled recipe."""
    from celstack.cli.output import print_line

    names = bundled_names()
    width = max(map(len, names))
    for name in names:
        table = read_recipe(str(bundled_folder() / name)).table
        print_line(f"{name:<{width}}  {table.get('description', '')}".rstrip())
