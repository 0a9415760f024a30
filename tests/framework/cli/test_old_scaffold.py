"""Packages that `celstack new-plugin` of 0.1.0 wrote still load and pass their tests."""

import runpy
import sys
from pathlib import Path
from string import Template

import pytest

from celstack.registry.kinds import KINDS
from celstack.testing import load_plugin

TEMPLATES = Path(__file__).parents[2] / "third_party" / "scaffold_0_1_0"


@pytest.fixture(params=KINDS)
def old_package(request, tmp_path, monkeypatch):
    """The kind, name, class name and test file of an installed package of 0.1.0."""
    kind = request.param
    name, module, class_name = f"old_{kind}", f"celstack_old_{kind}", f"Old{kind.capitalize()}"
    names = {
        "kind": kind,
        "name": name,
        "module": module,
        "class_name": class_name,
        "snake_a_kind": KINDS[kind].title.replace(" ", "_"),
    }
    for template, file in ((f"{kind}.py", f"{module}.py"), ("test.py", f"test_{module}.py")):
        text = (TEMPLATES / f"{template}.tmpl").read_text(encoding="utf-8")
        (tmp_path / file).write_text(Template(text).substitute(names), encoding="utf-8")
    metadata = tmp_path / f"celstack_{name}-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: celstack-{name}\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text(f"[celstack]\n{kind}-{name} = {module}\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield kind, name, class_name, tmp_path / f"test_{module}.py"
    sys.modules.pop(module, None)


def test_it_loads_by_name(old_package):
    kind, name, class_name, _ = old_package

    assert load_plugin(kind, name).__name__ == class_name


def test_its_own_tests_pass(old_package):
    *_, file = old_package
    tests = [
        function
        for name, function in runpy.run_path(str(file)).items()
        if name.startswith("test_")
    ]

    assert len(tests) == 2
    for test in tests:
        test()
