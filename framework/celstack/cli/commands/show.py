"""`celstack show`: document a plugin and its options, or a finding of the health check."""

from __future__ import annotations

import argparse
from inspect import cleandoc
from textwrap import fill
from typing import Any

from celstack.errors import CelstackError
from celstack.recipe.resolve import signature_of
from celstack.registry.catalog import Catalog
from celstack.registry.coerce import describe
from celstack.registry.kinds import KINDS
from celstack.registry.signature import REQUIRED
from celstack.runs.findings import MEANINGS
from celstack.text import did_you_mean, format_value

HEALTH = "health"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("kind", choices=[*KINDS, HEALTH])
    parser.add_argument(
        "name",
        nargs="?",
        help="a plugin of 'celstack plugins'; for health, a finding (default: all)",
    )


def main(arguments: argparse.Namespace) -> None:
    """Print the documentation and the options of a plugin."""
    from celstack.cli.output import print_line

    if arguments.kind == HEALTH:
        _explain_findings(arguments.name)
        return
    if arguments.name is None:
        raise CelstackError(
            f"no name given; 'celstack plugins --kind {arguments.kind}' lists them"
        )
    catalog = Catalog()
    plugin = catalog.find(arguments.kind, arguments.name)
    signature = signature_of(catalog, arguments.kind, arguments.name)
    print_line(f"{plugin.kind} {plugin.name} ({plugin.owner})")
    print_line(f"\n{cleandoc(signature.doc) or '(no documentation)'}\n")
    if not signature.options:
        print_line("No options.")
        return
    print_line("Options:")
    for option in signature.options:
        print_line(
            f"  {option.name}: {describe(option.annotation)} ({_default(option.default)})"
        )


def _explain_findings(kind: str | None) -> None:
    """Print the meaning of findings of the health check, and what to do about them."""
    from celstack.cli.output import print_line

    kind = kind and kind.replace(" ", "-")
    if kind is not None and kind not in MEANINGS:
        known = ", ".join(MEANINGS)
        hint = did_you_mean(kind, MEANINGS)
        raise CelstackError(f"unknown finding {format_value(kind)}{hint} (known: {known})")
    for name in [kind] if kind else MEANINGS:
        print_line(
            f"{name}\n{fill(MEANINGS[name], initial_indent='  ', subsequent_indent='  ')}\n"
        )


def _default(default: Any) -> str:
    if default is REQUIRED:
        return "required"
    if default is None:
        return "optional"
    return f"default {format_value(list(default) if isinstance(default, tuple) else default)}"
