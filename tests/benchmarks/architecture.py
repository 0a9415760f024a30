"""The packages of the tree: modules, lines, and who imports whom.

    python tests/benchmarks/architecture.py

Prints one row for each package with its modules, its lines and how many imports it has from
each other package, then what breaks the limits that ``tests/test_architecture.py`` asserts.
Imports inside functions and lazy exports count; imports for type checkers alone do not. Exits
with 1 if a limit is broken.
"""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCES = {"celstack": ROOT / "framework", "celstack_kit": ROOT / "plugins"}
MAX_MODULE_LINES = 250
MAX_FOLDER_MODULES = 20
COMPATIBILITY = ("celstack.catalog", "celstack.objective")
"""Modules that only import names from where they are now, for plugins of 0.1.0."""


class Module(NamedTuple):
    """A module, its lines, the modules that it imports, and the classes that it defines."""

    path: str
    lines: int
    imports: frozenset[str]
    classes: tuple[str, ...]


def read_modules() -> dict[str, Module]:
    """Read all modules of core and kit, by their dotted names."""
    paths = {_dotted(path, root): path for root, path in _files()}
    return {name: _read(path, name, paths) for name, path in sorted(paths.items())}


def package_of(name: str) -> str:
    """Return the package of the core or the kit that a module belongs to.

    Modules that lie in ``celstack`` itself are told apart: its ``__init__`` exports names of
    all packages, those for compatibility import some, and the others may be used by all.
    """
    if name in COMPATIBILITY:
        return "(compatibility)"
    parts = name.split(".")
    if len(parts) > 2 or (len(parts) == 2 and _is_package(name)):
        return ".".join(parts[:2])
    return "(root)" if len(parts) == 2 else name


def package_imports(modules: dict[str, Module]) -> dict[str, Counter[str]]:
    """Count the imports of each package from each other package."""
    result: dict[str, Counter[str]] = defaultdict(Counter)
    for name, module in modules.items():
        own = package_of(name)
        result[own].update(p for p in map(package_of, module.imports) if p != own)
    return result


def find_cycle(graph: dict[str, Counter[str]]) -> list[str]:
    """Return packages that import one another in a circle; none, if there is no cycle."""
    left = {package: set(imported) for package, imported in graph.items()}
    while free := [package for package in left if not left[package] & left.keys()]:
        for package in free:
            del left[package]
    # Every package that is left imports another that is left: follow these until one repeats.
    trail = list(left)[:1]
    while trail and trail.count(trail[-1]) == 1:
        trail.append(min(left[trail[-1]] & left.keys()))
    return trail[trail.index(trail[-1]) :] if trail else []


def crowded_folders(modules: dict[str, Module]) -> dict[str, int]:
    """Return the folders with too many modules."""
    folders = Counter(str(Path(module.path).parent) for module in modules.values())
    return {folder: count for folder, count in folders.items() if count > MAX_FOLDER_MODULES}


def long_modules(modules: dict[str, Module]) -> dict[str, int]:
    """Return the modules with too many lines."""
    return {m.path: m.lines for m in modules.values() if m.lines > MAX_MODULE_LINES}


def repeated_classes(modules: dict[str, Module]) -> dict[str, list[str]]:
    """Return the class names that several modules define."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules.values():
        for name in module.classes:
            found[name].append(module.path)
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def main() -> int:
    """Print the table and what breaks the limits."""
    modules = read_modules()
    graph = package_imports(modules)
    sizes: dict[str, list[int]] = defaultdict(list)
    for name, module in modules.items():
        sizes[package_of(name)].append(module.lines)
    print("| package | modules | lines | longest | imports |")
    print("| --- | ---: | ---: | ---: | --- |")
    for package, lines in sorted(sizes.items()):
        told = ", ".join(f"{other} {count}" for other, count in sorted(graph[package].items()))
        print(f"| {package} | {len(lines)} | {sum(lines)} | {max(lines)} | {told} |")
    total = sum(module.lines for module in modules.values())
    print(f"| all | {len(modules)} | {total} | | |\n")
    broken = {
        "cycle between packages": " -> ".join(find_cycle(graph)),
        f"folders with more than {MAX_FOLDER_MODULES} modules": crowded_folders(modules),
        f"modules with more than {MAX_MODULE_LINES} lines": long_modules(modules),
        "class names defined twice": repeated_classes(modules),
    }
    for limit, found in broken.items():
        print(f"{limit}: {found or 'none'}")
    return int(any(broken.values()))


def _files() -> Iterator[tuple[Path, Path]]:
    for package, root in SOURCES.items():
        yield from ((root, path) for path in (root / package).rglob("*.py"))


def _dotted(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _is_package(name: str) -> bool:
    root = SOURCES[name.split(".")[0]]
    return (root / Path(*name.split(".")) / "__init__.py").exists()


def _read(path: Path, name: str, known: dict[str, Path]) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    imports, classes = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            classes.append(node.name)
        elif id(node) in typing_only:
            continue
        elif isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = {f"{module}.{alias.name}" for alias in node.names}
            imports |= {full if full in known else module for full in names}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOME":
            imports |= {f"{name}.{home}" for home in ast.literal_eval(node.value).values()}
    relative = path.relative_to(ROOT).as_posix()
    known_imports = frozenset(imports & known.keys() - {name})
    return Module(relative, len(text.splitlines()), known_imports, tuple(classes))


if __name__ == "__main__":
    sys.exit(main())
