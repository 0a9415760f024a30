"""The command line: `run-recipe` and `celstack`. Heavy imports wait until they are needed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib import import_module

from celstack.cli.output import complain, say
from celstack.errors import CelstackError, RunFailedError

COMMANDS = {
    "recipes": "list the bundled recipes",
    "plugins": "list what is installed",
    "show": "explain a plugin and its options, or what the health check found",
    "check": "find the mistakes of a recipe without running it",
    "data": "list what datasets have and need, and fetch published files",
    "evaluate": "score a run again, from its folder alone",
    "sweep": "run a recipe with every combination of some options, and compare",
    "table": "set finished runs side by side with published figures",
    "report": "write the page of a run again, from its folder alone",
    "compare": "set several runs side by side in one page",
    "decompose": "take images apart with a run: layers, maps, scenes, OpenRaster",
    "render": "make images of scene files, with the sprites of a run",
    "vary": "change sprites, colours, places and sizes in an image, as a figure",
    "sprites": "write the sprites and backgrounds of a run as pictures",
    "look": "draw the images that a recipe would learn from",
    "new-plugin": "write a new plugin package to start from",
}


def run_recipe() -> None:
    """Run one recipe: the entry point of `run-recipe`."""
    from celstack.cli.commands import run

    parser = argparse.ArgumentParser(
        prog="run-recipe", description="Learn sprites from images, as a recipe says."
    )
    run.add_arguments(parser)
    _finish(lambda: run.main(parser.parse_args()))


def celstack() -> None:
    """Run one of the other commands: the entry point of `celstack`."""
    parser = argparse.ArgumentParser(
        prog="celstack",
        description="Look at recipes, plugins, data and runs, and make new plugins.",
    )
    parser.add_argument("--version", action="store_true", help="say the version and stop")
    choices = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        chosen = choices.add_parser(name, help=summary, description=summary.capitalize() + ".")
        if name in sys.argv[1:]:
            module = import_module(f"celstack.cli.commands.{name.replace('-', '_')}")
            module.add_arguments(chosen)
            chosen.set_defaults(main=module.main)
    _finish(lambda: _dispatch(parser, parser.parse_args()))


def _dispatch(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    if arguments.version:
        from importlib.metadata import version

        say(f"celstack {version('celstack')}")
    elif arguments.command is None:
        parser.print_help()
    else:
        arguments.main(arguments)


def _finish(command: Callable[[], None]) -> None:
    """Run a command and exit with a code.

    0 if all went well, 1 for a failed run, 2 for a user's mistake, 130 on Ctrl-C and 143 on
    SIGTERM, as shells have it.
    """
    code: int | str | None = 0
    try:
        try:
            command()
        except SystemExit as asked:  # by the parser, after printing help or usage
            code = asked.code
        sys.stdout.flush()
    except RunFailedError as error:
        code = _complain(error, 1)
    except CelstackError as error:
        code = _complain(error, 2)
    except KeyboardInterrupt as error:
        code = _complain(error, _stop_code(error))
    except BrokenPipeError:
        # Whoever read our output has had enough of it, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _complain(error: BaseException, code: int) -> int:
    """Say what ended a command; of several processes, one says what all of them know."""
    rank_local = getattr(error, "rank_local", False)
    if rank_local or os.environ.get("LOCAL_RANK", "0") == "0":
        complain(str(error) or "interrupted", code)
    return code


def _stop_code(stopped: KeyboardInterrupt) -> int:
    """Return 128 and the number of the signal."""
    from celstack.signals import Terminated

    return 128 + (15 if isinstance(stopped, Terminated) else 2)
