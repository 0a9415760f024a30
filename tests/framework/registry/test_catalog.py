import sys

import pytest

from celstack.errors import CelstackError
from celstack.registry.catalog import Catalog
from celstack.registry.kinds import KINDS

GOOD = """
from celstack import Metric, hookimpl

class Zero(Metric):
    def reset(self): pass
    def update(self, scene, rendering, batch): pass
    def compute(self): return 0.0

@hookimpl
def celstack_metrics():
    return {"zero": Zero}
"""


def refusal(catalog, kind, name):
    with pytest.raises(CelstackError) as refused:
        catalog.load(kind, name)
    return str(refused.value)


# Listing.


def test_listing_imports_nothing(plugin):
    entry = plugin("metric-zero", "raise SystemExit('imported')")

    catalog = Catalog([entry])

    assert catalog.names("metric") == ["zero"]
    assert entry.module not in sys.modules


def test_a_plugin_is_listed_with_kind_name_package_and_version(entry_point):
    (listed,) = Catalog([entry_point("metric-zero", "zero", "acme", "1.2")]).plugins

    assert (listed.kind, listed.name, listed.owner) == ("metric", "zero", "acme 1.2")


def test_a_name_may_have_dashes(entry_point):
    assert Catalog([entry_point("metric-a-b", "m")]).names("metric") == ["a-b"]


def test_damaged_metadata_of_a_package_costs_only_its_name(entry_point):
    entry = entry_point("metric-zero", "zero")
    entry.dist.text = None

    (listed,) = Catalog([entry]).plugins

    assert listed.owner == "? ?"


def test_the_installed_catalog_has_something_of_every_kind(catalog):
    assert all(catalog.names(kind) for kind in KINDS)


# Loading.


def test_a_good_plugin_is_loaded_as_its_class(plugin):
    catalog = Catalog([plugin("metric-zero", GOOD)])

    assert catalog.load("metric", "zero").__name__ == "Zero"


def test_a_plugin_is_loaded_once(plugin):
    catalog = Catalog([plugin("metric-zero", GOOD)])

    assert catalog.load("metric", "zero") is catalog.load("metric", "zero")


def test_one_module_may_serve_two_entries(plugin, entry_point):
    source = GOOD.replace('{"zero": Zero}', '{"zero": Zero, "nil": Zero}')
    entry = plugin("metric-zero", source)
    catalog = Catalog([entry, entry_point("metric-nil", entry.module)])

    assert catalog.load("metric", "nil") is catalog.load("metric", "zero")


def test_an_entry_may_point_at_an_object_with_hooks(plugin, entry_point):
    source = GOOD.replace("@hookimpl\n", "class Hooks:\n  @staticmethod\n  @hookimpl\n")
    source = source.replace(
        "def celstack_metrics():\n    ", "  def celstack_metrics():\n      "
    )
    module = plugin("metric-zero", source).module
    catalog = Catalog([entry_point("metric-zero", f"{module}:Hooks")])

    assert catalog.load("metric", "zero").__name__ == "Zero"


# Broken plugins.


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import h5pie", "ModuleNotFoundError: No module named 'h5pie'"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("raise RuntimeError('several\\nlines')", "RuntimeError: several lines"),
        ("def", "SyntaxError: "),
        (
            GOOD.replace("celstack_metrics", "celstack_metricks"),
            "there is no hook celstack_metricks; did you mean 'celstack_metrics'?",
        ),
        (
            GOOD.replace("@hookimpl", ""),
            "it has no hook celstack_metrics, or lacks @hookimpl on it, or it returns nothing",
        ),
        (GOOD.replace('return {"zero": Zero}', "return None"), "or it returns nothing"),
        (
            GOOD.replace('{"zero": Zero}', "[Zero]"),
            "its celstack_metrics must return a dict of classes by name, not [<class",
        ),
        (
            GOOD.replace('{"zero"', '{"nil"'),
            "its celstack_metrics provides 'nil', not 'zero'",
        ),
        (
            GOOD.replace('"zero": Zero', '"zero": Zero()'),
            "is not a subclass of celstack.Metric",
        ),
        (GOOD.replace('"zero": Zero', '"zero": int'), "is not a subclass of celstack.Metric"),
        (
            GOOD.replace("def compute", "def conpute"),
            "Zero does not define compute",
        ),
        (
            GOOD.replace("celstack_metrics()", "celstack_metrics(folder)"),
            "Argument(s) {'folder'} are declared in the hookimpl",
        ),
        (GOOD.replace('return {"zero": Zero}', "1 / 0"), "ZeroDivisionError: division by zero"),
    ],
)
def test_a_broken_plugin_is_told_in_one_line_with_its_owner(plugin, source, reason):
    message = refusal(Catalog([plugin("metric-zero", source)]), "metric", "zero")

    assert message.startswith("broken plugin: metric-zero (acme 1.0): ")
    assert reason in message
    assert "\n" not in message


def test_a_module_that_is_not_there_is_a_broken_plugin(entry_point):
    message = refusal(Catalog([entry_point("metric-zero", "not_there")]), "metric", "zero")

    assert message.endswith("ModuleNotFoundError: No module named 'not_there'")


def test_a_broken_plugin_costs_only_itself(plugin):
    bad = GOOD.replace("celstack_metrics", "celstack_metricks")
    catalog = Catalog([plugin("metric-bad", bad), plugin("metric-zero", GOOD)])
    refusal(catalog, "metric", "bad")

    assert catalog.load("metric", "zero").__name__ == "Zero"


def test_a_broken_plugin_is_remembered_and_not_imported_again(plugin):
    entry = plugin("metric-zero", "import h5pie")
    catalog = Catalog([entry])

    assert refusal(catalog, "metric", "zero") == refusal(catalog, "metric", "zero")


def test_the_interrupt_of_a_user_is_not_taken_for_a_broken_plugin(plugin):
    catalog = Catalog([plugin("metric-zero", "raise KeyboardInterrupt")])

    with pytest.raises(KeyboardInterrupt):
        catalog.load("metric", "zero")


# Refused plugins.


def test_a_name_that_two_strangers_claim_is_refused_to_both(entry_point):
    catalog = Catalog(
        [
            entry_point("metric-zero", "a", "acme", "1"),
            entry_point("metric-zero", "b", "bolt", "2"),
        ]
    )

    assert [plugin.refused for plugin in catalog.plugins] == [
        "the name is claimed by bolt 2 too",
        "the name is claimed by acme 1 too",
    ]


def test_the_missed_name_recalls_both_packages_that_claim_it(entry_point):
    catalog = Catalog(
        [
            entry_point("metric-zero", "a", "acme", "1"),
            entry_point("metric-zero", "b", "bolt", "2"),
        ]
    )

    assert refusal(catalog, "metric", "zero") == (
        "no metric is called 'zero' (known: none)"
        "; refused plugin: metric-zero (acme 1): the name is claimed by bolt 2 too"
        "; refused plugin: metric-zero (bolt 2): the name is claimed by acme 1 too"
    )


def test_a_stranger_cannot_take_a_name_of_celstack(plugin, entry_point):
    own = plugin("metric-zero", GOOD, package="celstack")
    catalog = Catalog([entry_point("metric-zero", "other", "acme"), own])

    assert [p.refused for p in catalog.plugins] == ["the name is taken by celstack", ""]
    assert catalog.find("metric", "zero").entry is own


@pytest.mark.parametrize("name", ["zero", "metric_zero", "metrics-zero", "metric-", "-zero"])
def test_an_entry_must_be_named_by_kind_and_name(entry_point, name):
    (plugin,) = Catalog([entry_point(name, "m")]).plugins

    assert plugin.refused.startswith("an entry is named <kind>-<name>, the kind one of dataset")


def test_a_malformed_entry_is_recalled_when_its_name_is_missed(entry_point):
    catalog = Catalog([entry_point("metric_zero", "m")])

    assert "refused plugin: metric_zero (acme 1.0)" in refusal(catalog, "metric", "zero")


def test_an_entry_must_name_a_module(entry_point):
    (plugin,) = Catalog([entry_point("metric-zero", "no module!")]).plugins

    assert plugin.refused == "'no module!' does not name a module"


# What is missed.


def test_an_unknown_name_is_told_with_the_nearest(catalog):
    message = refusal(catalog, "transform", "positon")

    assert message.startswith("no transform is called 'positon'; did you mean 'position'?")
    assert "(known: " in message


def test_a_plugin_of_another_kind_is_told_as_such(catalog):
    assert refusal(catalog, "observer", "color").startswith(
        "'color' is a transform, not an observer (known: "
    )
