"""The command line: `run-recipe` and `celstack`. Heavy imports are made when needed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

from celstack.cli.output import (
    discard_output,
    finish_output,
    is_printing_rank,
    print_error,
    print_line,
    printed_warnings,
)
from celstack.errors import CelstackError, RunFailedError

COMMANDS = {
    "recipes": "list the bundled recipes",
    "plugins": "list the installed plugins",
    "show": "document a plugin and its options, or a finding of the health check",
    "check": "validate a recipe without running it",
    "data": "list the files of datasets, and download published ones",
    "evaluate": "evaluate a run again, from its folder",
    "sweep": "run a recipe with every combination of some options, and compare",
    "table": "compare finished runs with published results in a table",
    "report": "write the report page of a run again, from its folder",
    "compare": "compare several runs in one HTML page",
    "decompose": "decompose images with a run: layers, label maps, scenes, OpenRaster",
    "render": "render scene files with the sprites of a run",
    "vary": "draw an image with other sprites, colors, positions and sizes",
    "sprites": "write the sprites and backgrounds of a run as image files",
    "look": "draw the training images of a recipe",
    "new-plugin": "create a plugin package to start from",
}


def run_recipe() -> None:
    """Run one recipe: the entry point of `run-recipe`."""
    from celstack.cli.commands import run

    parser = argparse.ArgumentParser(
        prog="run-recipe",
        description="Train a model of sprites on images, as a recipe configures it.",
    )
    run.add_arguments(parser)
    _exit_after(lambda: _call(run.main, parser.parse_args()))


def celstack() -> None:
    """Run one of the other commands: the entry point of `celstack`."""
    parser = argparse.ArgumentParser(
        prog="celstack",
        description="Inspect recipes, plugins, data and runs, and create plugins.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    choices = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        chosen = choices.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + "."
        )
        if name in sys.argv[1:]:
            module = import_module(f"celstack.cli.commands.{name.replace('-', '_')}")
            module.add_arguments(chosen)
            chosen.set_defaults(main=module.main)
    _exit_after(lambda: _dispatch(parser, parser.parse_args()))


def _dispatch(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    if arguments.version:
        from importlib.metadata import version

        print_line(f"celstack {version('celstack')}")
    elif arguments.command is None:
        parser.print_help()
    else:
        _call(arguments.main, arguments)


def _call(main: Callable[[argparse.Namespace], None], arguments: argparse.Namespace) -> None:
    """Run a command, printing the warnings of library code."""
    with printed_warnings():
        main(arguments)


def _exit_after(command: Callable[[], None]) -> None:
    """Run a command and exit with a code.

    0 on success, 1 for a failed run, 2 for a mistake of the user, 130 on Ctrl-C and 143 on
    SIGTERM, as in shells.
    """
    code: int | str | None = 0
    try:
        try:
            command()
        except SystemExit as exit_request:  # of the parser, after printing help or usage
            code = exit_request.code
        finish_output()
    except RunFailedError as error:
        code = _print_failure(error, 1)
    except CelstackError as error:
        code = _print_failure(error, 2)
    except KeyboardInterrupt as error:
        code = _print_failure(error, _signal_exit_code(error))
    except BrokenPipeError:
        # The reader of our output has closed it, as `head` does.
        discard_output()
        code = 0
    sys.exit(code)


def _print_failure(error: BaseException, code: int) -> int:
    """Print the error that ended a command, once for all local ranks; return the code."""
    if getattr(error, "rank_local", False) or is_printing_rank():
        print_error(str(error) or "Interrupted")
    # This error counts, not one of the lines that were printed before it.
    with suppress(CelstackError, BrokenPipeError):
        finish_output()
    return code


def _signal_exit_code(stopped: KeyboardInterrupt) -> int:
    """Return 128 plus the number of the signal."""
    from celstack.signals import Terminated

    return 128 + (15 if isinstance(stopped, Terminated) else 2)
