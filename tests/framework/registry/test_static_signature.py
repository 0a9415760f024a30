"""Sources are read as Python itself would read them, or not at all."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pytest

from celstack.recipe.resolve import ASSEMBLY_MODULE, ROOT, signature_of
from celstack.registry.catalog import Catalog
from celstack.registry.coerce import describe
from celstack.registry.kinds import KINDS
from celstack.registry.signature import REQUIRED, SETTINGS, inspect_class
from celstack.registry.static_signature import NotStaticallyReadable, read_class, read_plugin

INSTALLED = [(p.kind, p.name) for p in Catalog().plugins if not p.refused]
PLUGIN = """
from pathlib import Path
from typing import Annotated, Any, Literal, Optional
from annotated_types import Ge, Interval
from celstack import Encoder, Metric, hookimpl
BIG = 9

class Zero(Metric):
    {init}
    def reset(self): pass
    def update(self, scene, rendering, batch): pass
    def compute(self): return 0.0

@hookimpl
def celstack_metrics():
    return {{"zero": Zero}}
"""


def spelt_out(signature):
    """What a reader sees of a signature; bounds read and bounds loaded differ in class."""
    return [(o.name, describe(o.annotation), o.default) for o in signature.options]


def read(plugin, init):
    entry = plugin("metric-zero", PLUGIN.format(init=init))
    return read_plugin(entry.module, "celstack_metrics", "zero"), entry


@pytest.mark.parametrize(("kind", "name"), INSTALLED, ids=map("-".join, INSTALLED))
def test_reading_a_plugin_says_what_loading_it_says(catalog, kind, name):
    signature = read_plugin(catalog.find(kind, name).entry.module, KINDS[kind].hook, name)
    loaded = inspect_class(catalog.load(kind, name))

    assert spelt_out(signature) == spelt_out(loaded)
    assert signature.doc == loaded.doc


@pytest.mark.parametrize("name", [ROOT, *SETTINGS])
def test_reading_the_settings_says_what_loading_them_says(name):
    signature = read_class(ASSEMBLY_MODULE, name)
    loaded = inspect_class(getattr(import_module(ASSEMBLY_MODULE), name))

    assert [o[:2] for o in spelt_out(signature)] == [o[:2] for o in spelt_out(loaded)]
    assert [o.default is REQUIRED for o in signature.options] == [
        o.default is REQUIRED for o in loaded.options
    ]


@pytest.mark.parametrize(
    ("argument", "annotation", "default"),
    [
        ("x", Any, REQUIRED),
        ("x: int", int, REQUIRED),
        ("x: int = -3", int, -3),
        ("x: tuple[int, int] | None = (1, 2)", tuple[int, int] | None, (1, 2)),
        ("x: Literal['a', 'b'] = 'a'", Literal["a", "b"], "a"),
        ("*, x: dict[str, Any] = {}", dict[str, Any], {}),
        ("x: Optional[Path] = None", Path | None, None),
    ],
)
def test_what_is_read_of_an_argument(plugin, argument, annotation, default):
    signature, _ = read(plugin, f"def __init__(self, {argument}): pass")

    (option,) = signature.options
    assert (option.name, option.annotation, option.default) == ("x", annotation, default)


def test_reading_does_not_import(plugin):
    _, entry = read(plugin, "def __init__(self, x: int = 0): pass")

    assert entry.module not in sys.modules


def test_a_class_without_a_constructor_takes_nothing(plugin):
    signature, _ = read(plugin, "pass")

    assert signature.options == ()


@pytest.mark.parametrize(
    "init",
    [
        "def __init__(self, *sizes: int): pass",
        "def __init__(self, **options): pass",
        "def __init__(self, x, /): pass",
        "def __init__(self, x: int = BIG): pass",
        "def __init__(self, x: Path = Path('a')): pass",
        "def __init__(self, x: Annotated[int, Ge(BIG)] = 9): pass",
        "def __init__(self, x: 'int' = 9): pass",
        "def __init__(self, x: list['Encoder']): pass",
        "def __init__(self, x: {}[0]): pass",
        "@staticmethod\n    def __init__(self, x): pass",
        "def __init__(self): pass\n    def __init__(self, x): pass",
    ],
)
def test_a_constructor_that_is_not_plain_is_not_read(plugin, init):
    with pytest.raises(NotStaticallyReadable):
        read(plugin, init)


@pytest.mark.parametrize(
    ("plain", "clever"),
    [
        ("class Zero(Metric)", "class Zero(Base)"),
        ("class Zero(Metric)", "class Zero(Metric, metaclass=Meta)"),
        ("class Zero(Metric)", "@improved\nclass Zero(Metric)"),
        ("class Zero(Metric)", "class Zero(Metric): pass\nclass Zero(Metric)"),
        ("class Zero(Metric):\n    pass", "@define\nclass Zero(Metric):\n    _x: int = 0"),
        ("class Zero(Metric):\n    pass", "@define\nclass Zero(Metric):\n    x: int = field()"),
        ("class Zero(Metric):\n    pass", "@define\nclass Zero(Base):\n    x: int = 0"),
        ('{"zero": Zero}', '{"zero": make(Zero)}'),
        ('{"zero": Zero}', "dict(zero=Zero)"),
        ("def celstack_metrics", "def other"),
        ("BIG = 9", "BIG = = 9"),
    ],
)
def test_a_module_that_is_not_plain_is_not_read(plugin, plain, clever):
    source = PLUGIN.format(init="pass")
    assert plain in source
    entry = plugin("metric-zero", source.replace(plain, clever))

    with pytest.raises(NotStaticallyReadable):
        read_plugin(entry.module, "celstack_metrics", "zero")


def test_fields_are_read_as_options(plugin):
    source = PLUGIN.format(init="x: int = 3\n    y: list[str] = field(factory=list)")
    entry = plugin("metric-zero", source.replace("class Zero", "@define\nclass Zero"))

    signature = read_plugin(entry.module, "celstack_metrics", "zero")

    assert [(o.name, o.default) for o in signature.options] == [("x", 3), ("y", [])]


@pytest.mark.parametrize("module", ["not_there", "not.there", "sys", "celstack.interfaces.."])
def test_a_module_without_a_source_is_not_read(module):
    with pytest.raises(NotStaticallyReadable):
        read_class(module, "Anything")


def test_a_package_that_exits_when_it_is_imported_is_not_read(plugin, tmp_path):
    package = tmp_path / "site" / "exiting"
    package.mkdir()
    Path(package, "__init__.py").write_text("raise SystemExit")

    with pytest.raises(NotStaticallyReadable):
        read_class("exiting.inner", "Anything")


def test_what_cannot_be_read_is_loaded(plugin):
    source = PLUGIN.format(init="def __init__(self, x: 'int' = BIG): pass")

    signature = signature_of(Catalog([plugin("metric-zero", source)]), "metric", "zero")

    assert spelt_out(signature) == [("x", "an integer", 9)]


def test_a_source_that_changed_is_read_again(plugin):
    before, _ = read(plugin, "def __init__(self, x: int): pass")
    after, _ = read(plugin, "def __init__(self, xyz: int): pass")

    assert (before.names(), after.names()) == (["x"], ["xyz"])
