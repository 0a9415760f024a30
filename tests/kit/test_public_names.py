"""Every plugin class can be imported from celstack_kit, and none is before it is used."""

import subprocess
import sys

import pytest

import celstack_kit
from celstack.registry.catalog import Catalog

CATALOG = Catalog()
OURS = [plugin for plugin in CATALOG.plugins if plugin.package == "celstack"]


@pytest.mark.parametrize("plugin", OURS, ids=[plugin.entry.name for plugin in OURS])
def test_the_class_of_every_entry_point_is_there(plugin):
    found = CATALOG.load(plugin.kind, plugin.name)

    assert getattr(celstack_kit, found.__name__) is found
    assert found.__name__ in celstack_kit.__all__


def test_there_is_nothing_else():
    classes = {CATALOG.load(plugin.kind, plugin.name).__name__ for plugin in OURS}

    assert celstack_kit.__all__ == sorted(classes)
    assert classes <= set(dir(celstack_kit))


def test_a_name_that_is_no_plugin_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'Pixel'"):
        celstack_kit.Pixel  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Pixel'"):
        from celstack_kit import Pixel  # noqa: F401


def test_torch_is_not_imported_before_a_class_is_used():
    program = (
        "import sys, celstack_kit\n"
        "celstack_kit.__all__, dir(celstack_kit)\n"
        "assert 'torch' not in sys.modules and 'celstack' not in sys.modules\n"
        "from celstack_kit import Pixels, Color, Position, Ordered, Matching\n"
        "print(Pixels.__module__, Matching.__module__)"
    )

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert not ran.stderr
    assert ran.stdout.split() == [
        "celstack_kit.prototypes.pixels",
        "celstack_kit.selectors.matching",
    ]
