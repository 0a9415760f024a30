"""``celstack.data`` offers what dataset plugins need, without importing torch."""

import subprocess
import sys

import pytest

import celstack.data


@pytest.mark.parametrize("name", celstack.data.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(celstack.data, name).__doc__


def test_other_names_are_refused_as_modules_do():
    with pytest.raises(AttributeError, match=r"'celstack\.data' has no attribute 'nothing'"):
        _ = celstack.data.nothing


def test_searching_for_files_imports_neither_torch_nor_pillow():
    code = (
        "import sys; from celstack.data import cache_dir, data_dirs, find_file, require_file;"
        "data_dirs(None); print({'torch', 'numpy', 'PIL'} & set(sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == "set()\n"
