"""`celstack show`: explain a plugin and its options, or a finding of the health check."""

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
    """Say what the command takes."""
    parser.add_argument("kind", choices=[*KINDS, HEALTH])
    parser.add_argument(
        "name",
        nargs="?",
        help="as 'celstack plugins' lists it; a kind of finding, or nothing, for health",
    )


def main(arguments: argparse.Namespace) -> None:
    """Print documentation and options."""
    from celstack.cli.output import say

    if arguments.kind == HEALTH:
        _explain_findings(arguments.name)
        return
    if arguments.name is None:
        raise CelstackError(
            f"name the {arguments.kind} to show; 'celstack plugins' lists all of them"
        )
    catalog = Catalog()
    plugin = catalog.find(arguments.kind, arguments.name)
    signature = signature_of(catalog, arguments.kind, arguments.name)
    say(f"{plugin.kind} {plugin.name} ({plugin.owner})")
    say(f"\n{cleandoc(signature.doc) or 'It says nothing of itself.'}\n")
    if not signature.options:
        say("It takes no options.")
        return
    say("Options:")
    for option in signature.options:
        say(f"  {option.name}: {describe(option.annotation)} ({_default(option.default)})")


def _explain_findings(kind: str | None) -> None:
    """Print what findings of the health check mean, and what to do about them."""
    from celstack.cli.output import say

    kind = kind and kind.replace(" ", "-")
    if kind is not None and kind not in MEANINGS:
        known = ", ".join(MEANINGS)
        hint = did_you_mean(kind, MEANINGS)
        raise CelstackError(f"no finding is called {format_value(kind)}{hint} (known: {known})")
    for name in [kind] if kind else MEANINGS:
        say(f"{name}\n{fill(MEANINGS[name], initial_indent='  ', subsequent_indent='  ')}\n")


def _default(default: Any) -> str:
    if default is REQUIRED:
        return "required"
    if default is None:
        return "optional"
    return f"default {format_value(list(default) if isinstance(default, tuple) else default)}"
