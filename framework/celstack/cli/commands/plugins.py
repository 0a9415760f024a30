"""`celstack plugins`: list the installed plugins, from package metadata."""

from __future__ import annotations

import argparse

from celstack.errors import CelstackError
from celstack.registry.catalog import Catalog, Plugin
from celstack.registry.kinds import KINDS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--kind", choices=KINDS, help="list only this kind")
    parser.add_argument(
        "--check", action="store_true", help="import each plugin to check that it works"
    )


def main(arguments: argparse.Namespace) -> None:
    """Print a table; with --check, fail if any plugin is broken."""
    from celstack.cli.output import print_line

    catalog = Catalog()
    rows = [("KIND", "NAME", "PACKAGE", "VERSION", "STATE")]
    for plugin in catalog.plugins:
        if arguments.kind in (None, plugin.kind):
            state = plugin.refused and f"refused: {plugin.refused}"
            state = state or (_try_loading(catalog, plugin) if arguments.check else "installed")
            rows.append((plugin.kind, plugin.name, plugin.package, plugin.version, state))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print_line(
            "  ".join(
                f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)
            ).rstrip()
        )
    if arguments.check:
        broken = [row for row in rows[1:] if row[-1] != "works"]
        if broken:
            raise CelstackError(f"{len(broken)} of {len(rows) - 1} plugins cannot be used")


def _try_loading(catalog: Catalog, plugin: Plugin) -> str:
    try:
        catalog.load(plugin.kind, plugin.name)
    except CelstackError as error:
        return str(error).replace(f"broken plugin: {plugin.title}", "broken")
    return "works"
