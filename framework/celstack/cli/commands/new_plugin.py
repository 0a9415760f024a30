"""`celstack new-plugin`: write a new plugin package to start from."""

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
NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
LONGEST = 60
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
# Class names that would hide what the templates use.
SPOKEN_FOR = {
    *celstack.__all__,
    *("Annotated", "Float", "Ge", "Int", "Loss", "Mapping", "Path", "Sequence", "Tensor"),
    *("False", "None", "True"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    parser.add_argument("name", help="what recipes will call the plugin, as in soft_shadow")
    parser.add_argument("--kind", required=True, help=f"one of {', '.join(KINDS)}")
    parser.add_argument(
        "--into", default=".", metavar="DIR", help="where to put its folder (here)"
    )


def main(arguments: argparse.Namespace) -> None:
    """Write the package and say what to do next."""
    from celstack.cli.output import say

    kind, name = arguments.kind, arguments.name
    check_names(kind, name)
    folder = write_package(kind, name, Path(arguments.into))
    source = folder / "src" / f"{_module(name)}.py"
    say(f"wrote {folder}: {KINDS[kind].title} that works; make it yours in {source}")
    say("next:")
    say(f'  pip install -e "{folder}[dev]"')
    say(f"  celstack show {kind} {name}")
    say(f'  pytest "{folder}"')


def check_names(kind: str, name: str) -> None:
    """Refuse what could not be installed, imported or found."""
    if kind not in KINDS:
        near = did_you_mean(kind, KINDS)
        raise CelstackError(
            f"--kind: no kind is called '{kind}'{near} (known: {', '.join(KINDS)})"
        )
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        raise CelstackError(
            f"{name!r} cannot name a plugin; use at most {LONGEST} small letters, digits and "
            "single dashes or underscores, beginning with a letter, as in soft_shadow"
        )
    if _class_name(name) in SPOKEN_FOR:
        raise CelstackError(f"'{name}' would hide {_class_name(name)}, which plugins use")
    for plugin in Catalog().plugins:
        if plugin.kind == kind and plugin.name == name:
            raise CelstackError(f"the {kind} '{name}' is there already, from {plugin.owner}")
    if find_spec(_module(name)) is not None:
        raise CelstackError(f"a module {_module(name)} is there already; choose another name")


def write_package(kind: str, name: str, into: Path) -> Path:
    """Write all files, or none."""
    import shutil

    folder = into / name
    if folder.exists() or folder.is_symlink():
        raise CelstackError(f"{folder}: is there already; nothing was changed")
    if not into.is_dir():
        raise CelstackError(f"--into {into}: there is no such folder")
    # A folder of another name becomes the real one when it is complete.
    draft = into / f".{name}-{os.getpid()}"
    try:
        draft.mkdir()
        for path, text in package_files(kind, name).items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            (draft / path).write_text(text, encoding="utf-8")
        draft.rename(folder)
    except OSError as error:
        raise CelstackError(f"{folder}: cannot write there: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def package_files(kind: str, name: str) -> dict[str, str]:
    """Return the files of a package, by their paths in it."""
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
