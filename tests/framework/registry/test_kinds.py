import pytest

from celstack import hookspecs
from celstack.registry.kinds import KINDS


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_has_a_hook(kind):
    assert hasattr(hookspecs, kind.hook)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_has_an_interface(kind):
    assert kind.load_interface().__name__ == kind.interface


def test_every_hook_that_provides_parts_belongs_to_a_kind():
    names = {n for n in vars(hookspecs) if n.startswith("celstack_") and n.endswith("s")}

    assert names == {kind.hook for kind in KINDS.values()}


def test_kinds_have_the_right_article():
    assert [KINDS["encoder"].title, KINDS["metric"].title] == ["an encoder", "a metric"]
