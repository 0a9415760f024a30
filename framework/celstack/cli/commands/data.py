"""`celstack data`: list the files of datasets, and download published ones."""

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
    """Declare the command's arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    summary = "list which files are there, can be downloaded, or are not needed"
    verbs.add_parser("list", help=summary, description=summary.capitalize() + ".")
    summary = "download the published files of a dataset"
    get = verbs.add_parser("get", help=summary, description=summary.capitalize() + ".")
    get.add_argument("name", help="a dataset of 'celstack data list'")
    get.add_argument(
        "--to",
        metavar="DIR",
        help="download to this folder (default: CELSTACK_DATA, else the cache)",
    )
    get.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="NAME",
        help="only this file; may be repeated",
    )
    get.add_argument(
        "--extract",
        action="store_true",
        help="also unpack archives (datasets read them packed)",
    )


def main(arguments: argparse.Namespace) -> None:
    """List datasets, or download files."""
    if arguments.verb == "list":
        list_datasets()
    else:
        get_files(arguments.name, arguments.to, arguments.file, arguments.extract)


def list_datasets() -> None:
    """Print the files of every dataset; a broken plugin is listed as broken."""
    from celstack.cli.output import print_line
    from celstack.data.paths import describe_data_dirs
    from celstack.registry.catalog import Catalog

    catalog = Catalog()
    searched = describe_data_dirs(None)
    for plugin in catalog.plugins:
        if plugin.kind == "dataset":
            print_line(f"{plugin.name} ({plugin.owner})")
            for heading, text in _describe_plugin(catalog, plugin):
                print_line(f"  {heading:<10}{text}")
    print_line(f"searched in {searched}")


def _describe_plugin(catalog: Catalog, plugin: Plugin) -> list[tuple[str, str]]:
    if plugin.refused:
        return [("refused", plugin.refused)]
    try:
        return _describe_dataset(plugin.name, catalog.load("dataset", plugin.name))
    except CelstackError as error:
        return [("broken", str(error).removeprefix(f"broken plugin: {plugin.title}: "))]
    except Exception as error:  # attributes of a third-party class can be anything
        return [("broken", describe_error(error))]


def _describe_dataset(name: str, dataset: type[Dataset]) -> list[tuple[str, str]]:
    from celstack.data.paths import find_file

    known = dict.fromkeys([*dataset.files, *(source.file for source in dataset.sources)])
    found = [path for file in known if (path := find_file(None, [file])) is not None]
    lines = [("there", _with_size(path)) for path in found]
    for source in dataset.sources:
        if find_file(None, [source.file]) is None:
            text = f"{source.file}, {_size(source)}; license: {source.licence}"
            lines.append(("to get", f"{text}; celstack data get {name}"))
    if dataset.elsewhere and not found:
        lines.append(("missing", dataset.elsewhere))
    if dataset.generated:
        lines.append(("generated", "generates its images and needs no files"))
    return lines or [("-", f"declares no files; see 'celstack show dataset {name}'")]


def _with_size(path: Path) -> str:
    from rich.filesize import decimal

    return f"{path}, {decimal(path.stat().st_size)}" if path.is_file() else f"{path}, a folder"


def _size(source: Source) -> str:
    from rich.filesize import decimal

    return "size unknown" if source.size is None else decimal(source.size)


def get_files(name: str, to: str | None, files: list[str], unpack: bool) -> None:
    """Print source and license of a dataset's files, then download the missing ones."""
    from celstack.cli.output import print_line
    from celstack.data.download.archives import is_archive
    from celstack.data.paths import data_dirs
    from celstack.progress import TransferProgress
    from celstack.registry.catalog import Catalog

    sources = _choose_sources(name, Catalog().load("dataset", name), files)
    if unpack and not any(is_archive(source.file) for source in sources):
        raise CelstackError(f"--extract: none of the files of {name} is an archive")
    terms = dict.fromkeys((s.homepage, s.licence, s.citation) for s in sources)
    for homepage, licence, citation in terms:
        print_line(f"{name}: from {homepage}")
        print_line(f"license: {licence}")
        if citation:
            print_line(f"please cite: {citation}")
    root = None if to is None else Path(to)
    folder = data_dirs(root)[0]
    with TransferProgress(print_line) as progress:
        for source in sources:
            path = _get_one(source, root, folder, progress)
            if unpack and is_archive(source.file):
                _unpack(path, progress)


def _choose_sources(name: str, dataset: type[Dataset], files: list[str]) -> list[Source]:
    known = {source.file: source for source in dataset.sources}
    if not known:
        made = f"'{name}' generates its images" if dataset.generated else ""
        text = dataset.elsewhere or made or f"see 'celstack show dataset {name}'"
        raise CelstackError(f"'{name}' has no files to download; {text}")
    for file in files:
        if file not in known:
            text = f"'{name}' has no file {format_value(file)} to download"
            hint = did_you_mean(file, known)
            raise CelstackError(f"--file: {text}{hint} (known: {', '.join(known)})")
    return [known[file] for file in dict.fromkeys(files or known)]


def _get_one(
    source: Source, root: Path | None, folder: Path, progress: TransferProgress
) -> Path:
    from celstack.data.download.checksums import find_mismatch
    from celstack.data.download.fetch import fetch
    from celstack.data.paths import find_file

    report = progress.start(source.file)
    found = find_file(root, [source.file])
    if found is None:
        progress.finish(f"{source.file}: {_size(source)} from {source.url}")
        found = folder / source.file
        checked = fetch(source, found, report)
        progress.finish(f"{source.file}: downloaded to {found}; {checked}")
        return found
    try:
        mismatch = (
            find_mismatch(source, found, report) if found.is_file() else "it is not a file"
        )
    except OSError as error:
        raise CelstackError(f"{found}: cannot be read: {error.strerror}") from error
    if mismatch:
        text = f"exists, but {mismatch}; move it away to download it again"
        raise CelstackError(f"{found}: {text}, or name other files with --file")
    how = "as published" if source.checksum or source.size else "no checksum published"
    progress.finish(f"{source.file}: already in {found}; {how}")
    return found


def _unpack(archive: Path, progress: TransferProgress) -> None:
    from celstack.data.download.archives import extract

    new = extract(archive, archive.parent, progress.start(archive.name))
    progress.finish(f"{archive.name}: unpacked to {', '.join(map(str, new))}")
