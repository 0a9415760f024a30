"""`celstack.evaluation` is public, and importing it is cheap."""

import subprocess
import sys

import pytest

import celstack.evaluation

NO_TORCH = "import sys, celstack.evaluation; assert 'torch' not in sys.modules"


def test_importing_it_imports_no_torch():
    subprocess.run([sys.executable, "-c", NO_TORCH], check=True)


@pytest.mark.parametrize("name", celstack.evaluation.__all__)
def test_every_exported_name_has_documentation(name):
    assert getattr(celstack.evaluation, name).__doc__


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match=r"'celstack\.evaluation' has no attribute 'Odd'"):
        celstack.evaluation.Odd  # noqa: B018
