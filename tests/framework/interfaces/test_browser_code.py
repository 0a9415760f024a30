"""The JavaScript version of a transform lies beside its module."""

import pytest

from celstack import BrowserCode


@pytest.mark.parametrize("module", ["tint.py", "tint/__init__.py"])
def test_the_source_is_named_after_the_module_or_its_package(tmp_path, module):
    path = tmp_path / module
    path.parent.mkdir(exist_ok=True)
    (path.parent / "tint.js").write_text("() => ({})", encoding="utf-8")

    code = BrowserCode.beside(str(path), channels=3)

    assert (code.source, code.options) == ("() => ({})", {"channels": 3})
