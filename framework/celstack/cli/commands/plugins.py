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
    parser.add_argument(
        "--laws",
        action="store_true",
        help="also run the conformance check of its kind (celstack.testing) on each plugin",
    )


def main(arguments: argparse.Namespace) -> None:
    """Print a table, row by row; with --check, fail if any plugin is broken."""
    from celstack.cli.output import print_line

    catalog = Catalog()
    plugins = [p for p in catalog.plugins if arguments.kind in (None, p.kind)]
    rows = [("KIND", "NAME", "PACKAGE", "VERSION")]
    rows += [(plugin.kind, plugin.name, plugin.package, plugin.version) for plugin in plugins]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    print_line(f"{lines[0]}  STATE")
    broken = 0
    for plugin, line in zip(plugins, lines[1:], strict=True):
        state, usable = _state(catalog, plugin, arguments)
        broken += not usable
        print_line(f"{line}  {state}")
    if broken and (arguments.check or arguments.laws):
        faults = "cannot be used, or break a law" if arguments.laws else "cannot be used"
        raise CelstackError(f"{broken} of {len(plugins)} plugins {faults}")


def _state(catalog: Catalog, plugin: Plugin, arguments: argparse.Namespace) -> tuple[str, bool]:
    """Return the state of a plugin as text, and whether nothing is known against it."""
    if plugin.refused:
        return f"refused: {plugin.refused}", False
    if not (arguments.check or arguments.laws):
        return "installed", True
    try:
        part = catalog.load(plugin.kind, plugin.name)
    except CelstackError as error:
        return str(error).replace(f"broken plugin: {plugin.title}", "broken"), False
    if not arguments.laws:
        return "works", True

    from celstack.testing.installed import CannotBeCheckedError, check_laws

    try:
        check_laws(plugin.kind, part)
    except CannotBeCheckedError as error:
        return f"works; laws not checked: {error}", True
    except AssertionError as error:
        return f"breaks a law: {' '.join(str(error).split())}", False
    return "keeps the laws", True
