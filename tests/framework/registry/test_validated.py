from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import pytest
from annotated_types import Ge

from celstack import CelstackError, Dataset, Stage, Training, Transforms
from celstack.interfaces.part import Part
from celstack.registry.catalog import Catalog

if TYPE_CHECKING:
    from nowhere import Unknown


class Sized(Part):
    def __init__(self, size: Annotated[int, Ge(1)] = 1, *others: int, **more: float) -> None:
        self.size, self.others, self.more = size, others, more


class Curious(Part):
    def __init__(self, what: Unknown, size: int) -> None:
        self.what = what


def test_a_part_refuses_in_python_what_a_recipe_would_refuse():
    pixels = Catalog().load("prototype", "pixels")

    with pytest.raises(CelstackError) as refused:
        pixels(count=-1)

    assert str(refused.value) == ("Pixels(count=...): must be an integer of at least 1, not -1")


def test_arguments_by_position_are_checked_too():
    with pytest.raises(CelstackError, match=r"Sized\(size=\.\.\.\)"):
        Sized(0)


def test_the_first_of_several_mistakes_is_told():
    with pytest.raises(CelstackError, match="steps"):
        Stage(steps=0, network_factor=-1)


def test_arguments_that_may_be_many_are_left_alone():
    sized = Sized(2, 3, 4, x=5.0)

    assert (sized.others, sized.more) == ((3, 4), {"x": 5.0})


def test_arguments_are_converted_as_in_a_recipe():
    assert type(Training(weight_decay=1).weight_decay) is float


def test_settings_are_checked_too():
    with pytest.raises(
        CelstackError, match=r"Training\(batch_size=\.\.\.\): must be an integer"
    ):
        Training(batch_size="many")


def test_a_part_must_be_of_its_kind():
    with pytest.raises(CelstackError) as refused:
        Transforms(layer=["color"])

    assert str(refused.value) == ("Transforms(layer[0]=...): must be a transform, not 'color'")


def test_an_annotation_that_cannot_be_evaluated_is_not_checked():
    assert Curious(what=3, size=1).what == 3


def test_an_annotation_that_cannot_be_evaluated_costs_no_other_its_check():
    with pytest.raises(CelstackError, match="must be an integer"):
        Curious(what=3, size="a")


def test_an_incomplete_part_names_what_is_missing():
    class Half(Dataset):
        image_shape = (3, 8, 8)

        def count(self, split):
            return 1

    with pytest.raises(TypeError, match=r"abstract method '?read"):
        Half()
