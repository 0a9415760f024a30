"""`celstack new-plugin`: write a new plugin package to start from."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("name")


def main(arguments: argparse.Namespace) -> None:
    """Write the package."""
