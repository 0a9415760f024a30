from pathlib import Path

import pytest

import celstack

CORE = Path(celstack.__file__).parent
FILES = [
    path for path in CORE.rglob("*") if path.is_file() and path.parent.name != "__pycache__"
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORE)))
def test_the_core_never_names_the_kit(path):
    assert "celstack_kit" not in path.read_text(encoding="utf-8")
