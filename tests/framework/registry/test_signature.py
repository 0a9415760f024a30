from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celstack.registry.signature import REQUIRED, Option, inspect_class

if TYPE_CHECKING:
    from nowhere import Unknown


def test_each_keyword_of_a_constructor_is_an_option():
    class Part:
        """Of something."""

        def __init__(self, size: int, *, name: str = "a", any_other=None):
            pass

    signature = inspect_class(Part)

    assert signature.doc == "Of something."
    assert signature.options == (
        Option("size", int, REQUIRED),
        Option("name", str, "a"),
        Option("any_other", Any, None),
    )


def test_what_has_no_name_is_no_option():
    class Part:
        def __init__(self, first, /, *rest: int, known: int = 1, **others: int):
            pass

    assert inspect_class(Part).names() == ["known"]


def test_an_annotation_that_cannot_be_evaluated_allows_anything_and_costs_no_other():
    class Part:
        def __init__(self, what: Unknown, size: int):
            pass

    assert [option.annotation for option in inspect_class(Part).options] == [Any, int]


def test_a_class_without_a_constructor_takes_nothing():
    class Part:
        pass

    assert inspect_class(Part).options == ()
