"""`celstack new-plugin`: create a plugin package to start from."""

from __future__ import annotations

import argparse
import os
import re
from importlib.util import find_spec
from pathlib import Path

import celstack
from celstack.errors import CelstackError
from celstack.registry.catalog import Catalog
from celstack.registry.kinds import KINDS
from celstack.text import did_you_mean

TEMPLATES = Path(__file__).parents[1] / "scaffold"
NAME_PATTERN = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
MAX_NAME_CHARACTERS = 60
# Where a recipe names a part of each kind.
USAGE = {
    "dataset": '[dataset]\nuse = "{}"',
    "prototype": '[sprites]\nuse = "{}"',
    "transform": '[[transforms.layer]]\nuse = "{}"',
    "compositor": '[compositor]\nuse = "{}"',
    "selector": '[selector]\nuse = "{}"',
    "predictor": '[predictor]\nuse = "{}"',
    "encoder": '[predictor.encoder]\nuse = "{}"',
    "metric": 'metrics = ["{}"]',
    "observer": 'observers = ["{}"]',
}
# Class names that would shadow names that the templates import.
RESERVED_CLASS_NAMES = {
    *celstack.__all__,
    *("Annotated", "Float", "Ge", "Int", "Mapping", "Path", "Sequence", "Tensor"),
    *("False", "None", "True"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", help="the plugin's name in recipes, such as soft_shadow")
    parser.add_argument("--kind", required=True, help=f"one of {', '.join(KINDS)}")
    parser.add_argument(
        "--into",
        default=".",
        metavar="DIR",
        help="create its folder in DIR (default: the current folder)",
    )


def main(arguments: argparse.Namespace) -> None:
    """Write the package and print the next steps."""
    from celstack.cli.output import print_line

    kind, name = arguments.kind, arguments.name
    check_names(kind, name)
    folder = write_package(kind, name, Path(arguments.into))
    source = folder / "src" / f"{_module(name)}.py"
    print_line(f"Created {folder}: {KINDS[kind].title} that works; edit {source}")
    print_line("Next:")
    print_line(f'  pip install -e "{folder}[dev]"')
    print_line(f"  celstack show {kind} {name}")
    print_line(f'  pytest "{folder}"')


def check_names(kind: str, name: str) -> None:
    """Raise if a plugin of this kind and name could not be installed, imported or found."""
    if kind not in KINDS:
        near = did_you_mean(kind, KINDS)
        raise CelstackError(
            f"--kind: no kind is called '{kind}'{near} (known: {', '.join(KINDS)})"
        )
    if not NAME_PATTERN.fullmatch(name) or len(name) > MAX_NAME_CHARACTERS:
        raise CelstackError(
            f"{name!r} is not a valid name; use at most {MAX_NAME_CHARACTERS} lower-case "
            "letters, digits and single dashes or underscores, starting with a letter, "
            "as in soft_shadow"
        )
    if _class_name(name) in RESERVED_CLASS_NAMES:
        raise CelstackError(
            f"'{name}': the class name {_class_name(name)} is reserved; choose another"
        )
    for plugin in Catalog().plugins:
        if plugin.kind == kind and plugin.name == name:
            raise CelstackError(f"the {kind} '{name}' exists already, in {plugin.owner}")
    if find_spec(_module(name)) is not None:
        raise CelstackError(f"a module {_module(name)} exists already; choose another name")


def write_package(kind: str, name: str, into: Path) -> Path:
    """Write all files of the package or none; return its folder."""
    import shutil

    folder = into / name
    if folder.exists() or folder.is_symlink():
        raise CelstackError(f"{folder}: exists already; nothing was changed")
    if not into.is_dir():
        raise CelstackError(f"--into {into}: no such folder")
    # Renamed to its final name when it is complete.
    staging = into / f".{name}-{os.getpid()}"
    try:
        staging.mkdir()
        for path, text in package_files(kind, name).items():
            (staging / path).parent.mkdir(parents=True, exist_ok=True)
            (staging / path).write_text(text, encoding="utf-8")
        staging.rename(folder)
    except OSError as error:
        raise CelstackError(f"{folder}: cannot write there: {error.strerror}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return folder


def package_files(kind: str, name: str) -> dict[str, str]:
    """Return the contents of the package's files, by their paths."""
    module = _module(name)
    templates = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        f"src/{module}.py": f"{kind}.py",
        f"tests/test_{module}.py": "test.py",
    }
    return {path: _fill(template, kind, name) for path, template in templates.items()}


def _fill(template: str, kind: str, name: str) -> str:
    from string import Template

    title = KINDS[kind].title
    text = (TEMPLATES / f"{template}.tmpl").read_text(encoding="utf-8")
    return Template(text).substitute(
        kind=kind,
        a_kind=title,
        a_kind_capital=title.capitalize(),
        snake_a_kind=title.replace(" ", "_"),
        interface=KINDS[kind].interface,
        name=name,
        module=_module(name),
        package=f"celstack-{name}",
        class_name=_class_name(name),
        usage=USAGE[kind].format(name),
    )


def _module(name: str) -> str:
    return f"celstack_{name.replace('-', '_')}"


def _class_name(name: str) -> str:
    return "".join(piece.capitalize() for piece in re.split("[-_]", name))
