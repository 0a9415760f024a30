"""`celstack data`: list what datasets have, need and can make, and fetch published files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from celstack.errors import CelstackError
from celstack.text import describe_error, did_you_mean, format_value

if TYPE_CHECKING:
    from celstack.interfaces.dataset import Dataset, Source
    from celstack.progress import TransferProgress
    from celstack.registry.catalog import Catalog, Plugin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what the command takes."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    summary = "say what is there, what can be fetched, and what is generated"
    verbs.add_parser("list", help=summary, description=summary.capitalize() + ".")
    summary = "fetch the published files of a dataset"
    get = verbs.add_parser("get", help=summary, description=summary.capitalize() + ".")
    get.add_argument("name", help="as 'celstack data list' says it")
    get.add_argument("--to", metavar="DIR", help="where to (CELSTACK_DATA, or else the cache)")
    get.add_argument(
        "--file", action="append", default=[], metavar="NAME", help="only this; may be repeated"
    )
    get.add_argument(
        "--extract", action="store_true", help="unpack archives, too; none needs to be"
    )


def main(arguments: argparse.Namespace) -> None:
    """List, or fetch."""
    if arguments.verb == "list":
        list_all()
    else:
        get(arguments.name, arguments.to, arguments.file, arguments.extract)


def list_all() -> None:
    """Say of each dataset what it has; one that is broken costs only itself."""
    from celstack.cli.output import say
    from celstack.data.paths import describe_data_dirs
    from celstack.registry.catalog import Catalog

    catalog = Catalog()
    looked = describe_data_dirs(None)
    for plugin in catalog.plugins:
        if plugin.kind == "dataset":
            say(f"{plugin.name} ({plugin.owner})")
            for heading, text in _described(catalog, plugin):
                say(f"  {heading:<10}{text}")
    say(f"looked in {looked}")


def _described(catalog: Catalog, plugin: Plugin) -> list[tuple[str, str]]:
    if plugin.refused:
        return [("refused", plugin.refused)]
    try:
        return _lines(plugin.name, catalog.load("dataset", plugin.name))
    except CelstackError as error:
        return [("broken", str(error).removeprefix(f"broken plugin: {plugin.title}: "))]
    except Exception as error:  # attributes of a stranger's class can be anything
        return [("broken", describe_error(error))]


def _lines(name: str, dataset: type[Dataset]) -> list[tuple[str, str]]:
    from celstack.data.paths import find_file

    known = dict.fromkeys([*dataset.files, *(source.file for source in dataset.sources)])
    found = [path for file in known if (path := find_file(None, [file])) is not None]
    lines = [("there", _with_size(path)) for path in found]
    for source in dataset.sources:
        if find_file(None, [source.file]) is None:
            text = f"{source.file}, {_size(source)}; licence: {source.licence}"
            lines.append(("to fetch", f"{text}; celstack data get {name}"))
    if dataset.elsewhere and not found:
        lines.append(("missing", dataset.elsewhere))
    if dataset.generated:
        lines.append(("generated", "makes its images itself and needs no files"))
    return lines or [("-", f"names no files; see 'celstack show dataset {name}'")]


def _with_size(path: Path) -> str:
    from rich.filesize import decimal

    return f"{path}, {decimal(path.stat().st_size)}" if path.is_file() else f"{path}, a folder"


def _size(source: Source) -> str:
    from rich.filesize import decimal

    return "size unknown" if source.size is None else decimal(source.size)


def get(name: str, to: str | None, files: list[str], unpack: bool) -> None:
    """Say whose the files are and on what terms; then fetch what is not there yet."""
    from celstack.cli.output import say
    from celstack.data.download.archives import is_archive
    from celstack.data.paths import data_dirs
    from celstack.progress import TransferProgress
    from celstack.registry.catalog import Catalog

    sources = _chosen(name, Catalog().load("dataset", name), files)
    if unpack and not any(is_archive(source.file) for source in sources):
        raise CelstackError(f"--extract: there is no archive among the files of {name}")
    terms = dict.fromkeys((s.homepage, s.licence, s.citation) for s in sources)
    for homepage, licence, citation in terms:
        say(f"{name}: from {homepage}")
        say(f"licence: {licence}")
        if citation:
            say(f"please cite: {citation}")
    root = None if to is None else Path(to)
    folder = data_dirs(root)[0]
    with TransferProgress(say) as progress:
        for source in sources:
            path = _get_one(source, root, folder, progress)
            if unpack and is_archive(source.file):
                _unpack(path, progress)


def _chosen(name: str, dataset: type[Dataset], files: list[str]) -> list[Source]:
    known = {source.file: source for source in dataset.sources}
    if not known:
        made = f"'{name}' makes its images itself" if dataset.generated else ""
        text = dataset.elsewhere or made or f"see 'celstack show dataset {name}'"
        raise CelstackError(f"'{name}' has no files that can be fetched; {text}")
    for file in files:
        if file not in known:
            text = (
                f"'{name}' has no file {format_value(file)} to fetch{did_you_mean(file, known)}"
            )
            raise CelstackError(f"--file: {text} (known: {', '.join(known)})")
    return [known[file] for file in dict.fromkeys(files or known)]


def _get_one(
    source: Source, root: Path | None, folder: Path, progress: TransferProgress
) -> Path:
    from celstack.data.download.checksums import compare
    from celstack.data.download.fetch import fetch
    from celstack.data.paths import find_file

    report = progress.start(source.file)
    found = find_file(root, [source.file])
    if found is None:
        progress.finish(f"{source.file}: {_size(source)} from {source.url}")
        found = folder / source.file
        checked = fetch(source, found, report)
        progress.finish(f"{source.file}: fetched to {found}; {checked}")
        return found
    try:
        wrong = compare(source, found, report) if found.is_file() else "it is not a file"
    except OSError as error:
        raise CelstackError(f"{found}: cannot be read: {error.strerror}") from error
    if wrong:
        text = f"is there, but {wrong}; move it away to fetch it again"
        raise CelstackError(f"{found}: {text}, or name other files with --file")
    how = "as published" if source.checksum or source.size else "no checksum is published"
    progress.finish(f"{source.file}: already in {found}; {how}")
    return found


def _unpack(archive: Path, progress: TransferProgress) -> None:
    from celstack.data.download.archives import extract

    new = extract(archive, archive.parent, progress.start(archive.name))
    progress.finish(f"{archive.name}: unpacked to {', '.join(map(str, new))}")
