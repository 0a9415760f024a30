"""`celstack show`: say what a plugin does and takes."""

from __future__ import annotations

import argparse
from inspect import cleandoc
from typing import Any

from celstack.catalog import Catalog
from celstack.errors import shown
from celstack.kinds import KINDS
from celstack.options import REQUIRED
from celstack.resolve import signature_of
from celstack.values import describe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("name", help="as 'celstack plugins' lists it")


def main(arguments: argparse.Namespace) -> None:
    """Print documentation and options."""
    from celstack.cli import say

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


def _default(default: Any) -> str:
    if default is REQUIRED:
        return "required"
    if default is None:
        return "optional"
    return f"default {shown(list(default) if isinstance(default, tuple) else default)}"
