"""The tree keeps to its limits; ``tests/benchmarks/architecture.py`` prints it as a table."""

from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "benchmarks" / "architecture.py"
spec = spec_from_file_location("architecture", SCRIPT)
architecture = module_from_spec(spec)
spec.loader.exec_module(architecture)


@pytest.fixture(scope="module")
def modules():
    return architecture.read_modules()


def test_no_package_imports_one_that_imports_it(modules):
    graph = architecture.package_imports(modules)

    assert graph["celstack.training"]["celstack.model"] > 0
    assert architecture.find_cycle(graph) == []


def test_no_folder_has_too_many_modules(modules):
    assert architecture.crowded_folders(modules) == {}


def test_no_module_is_too_long(modules):
    assert architecture.long_modules(modules) == {}


def test_no_class_name_is_defined_twice(modules):
    assert architecture.repeated_classes(modules) == {}


def test_the_table_names_every_package(modules, capsys):
    architecture.main()

    table = capsys.readouterr().out
    for package in map(architecture.package_of, modules):
        assert f"| {package} | " in table


def test_a_cycle_is_found():
    graph = {"a": Counter("b"), "b": Counter("cd"), "c": Counter("b"), "d": Counter()}

    assert architecture.find_cycle(graph) == ["b", "c", "b"]
    assert architecture.find_cycle({"a": Counter("b"), "b": Counter("c")}) == []


def test_what_is_too_large_or_stands_twice_is_found():
    long = architecture.Module(
        "a/b.py", architecture.MAX_MODULE_LINES + 1, frozenset(), ("Twice",)
    )
    many = {
        str(n): architecture.Module(f"c/{n}.py", 1, frozenset(), ("Twice",) * (n == 0))
        for n in range(architecture.MAX_FOLDER_MODULES + 1)
    }

    modules = {"long": long, **many}

    assert architecture.long_modules(modules) == {"a/b.py": architecture.MAX_MODULE_LINES + 1}
    assert architecture.crowded_folders(modules) == {"c": architecture.MAX_FOLDER_MODULES + 1}
    assert architecture.repeated_classes(modules) == {"Twice": ["a/b.py", "c/0.py"]}
