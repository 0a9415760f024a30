"""`celstack show`: say what a plugin does and takes."""

from __future__ import annotations

import argparse

from celstack.catalog import Catalog
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
    say(f"\n{signature.doc}\n")
    if not signature.options:
        say("It takes no options.")
        return
    say("Options:")
    for option in signature.options:
        default = "required" if option.default is REQUIRED else f"default {option.default!r}"
        say(f"  {option.name}: {describe(option.annotation)} ({default})")
