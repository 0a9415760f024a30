"""The kit uses of the core only what any other package of plugins may use as well."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KIT = ROOT / "plugins" / "celstack_kit"
SCAFFOLD = ROOT / "framework" / "celstack" / "cli" / "scaffold"
PACKAGES = [
    "celstack",
    "celstack.data",
    "celstack.evaluation",
    "celstack.geometry",
    "celstack.model",
    "celstack.report",
    "celstack.testing",
]
MODULES = ["celstack.model.numba_jit", "celstack.progress", "celstack.text"]
"""Modules that are public by themselves, because their name explains their functions."""


def imports_of(source):
    """List what a module imports of the core: line, module, name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "celstack":
            yield from ((node.lineno, node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            yield from ((node.lineno, n, "") for n in names if n.split(".")[0] == "celstack")


def public_names(module):
    """List what a public package exports; of a module, what it defines."""
    made = import_module(module)
    if module in PACKAGES or hasattr(made, "__all__"):
        return set(made.__all__)
    defined = ast.parse(Path(made.__file__).read_text()).body
    names = {node.name for node in defined if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    for node in defined:
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def private_imports(source):
    """List the imports of the core that are not public."""
    return [
        f"line {line}: {module}.{name}"
        for line, module, name in imports_of(source)
        if module not in PACKAGES + MODULES or name not in public_names(module)
    ]


@pytest.mark.parametrize(
    "path", sorted(KIT.rglob("*.py")), ids=lambda path: path.relative_to(KIT).as_posix()
)
def test_the_kit_imports_public_names_only(path):
    assert private_imports(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", sorted(SCAFFOLD.glob("*.py.tmpl")), ids=lambda path: path.name)
def test_new_plugins_import_public_names_only(path):
    source = path.read_text(encoding="utf-8").replace("check_$kind", "check_metric")

    assert private_imports(source.replace("$", "")) == []


@pytest.mark.parametrize(
    "line",
    [
        "import celstack.geometry",
        "from celstack.geometry.sampling import extent",
        "from celstack.geometry import sampling",
        "def f():\n    from celstack.runs.directory import RunDirectory",
        "from celstack.text import _truncate",
        "from celstack import scene",
    ],
)
def test_imports_that_are_not_public_are_found(line):
    assert len(private_imports(line)) == 1


@pytest.mark.parametrize("package", PACKAGES)
def test_everything_exported_is_there_and_documented(package):
    exporting = import_module(package)

    assert len(set(exporting.__all__)) == len(exporting.__all__)
    for name in exporting.__all__:
        value = getattr(exporting, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{package}.{name} has no docstring"
    with pytest.raises(AttributeError, match="no attribute 'nothing_of_this_name'"):
        exporting.nothing_of_this_name  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_everything_exported(package):
    exporting = import_module(package)
    tree = ast.parse(Path(exporting.__file__).read_text(encoding="utf-8"))

    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("celstack")
        for alias in node.names
        if alias.name != "lazy_getattr"
    }

    assert imported == set(exporting.__all__)


def test_importing_public_packages_imports_no_torch():
    code = f"import sys, {', '.join(PACKAGES)}; assert 'torch' not in sys.modules"

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
