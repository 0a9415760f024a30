import attrs
import torch

from celstack.tensor_fields import map_tensors, tensor_fields


@attrs.frozen(eq=False)
class Pair:
    first: torch.Tensor | None
    second: torch.Tensor | None


def test_every_field_is_mapped_and_none_stays_none():
    pair = map_tensors(lambda values: values + 1, Pair(torch.zeros(2), None))

    assert pair.first.tolist() == [1.0, 1.0]
    assert pair.second is None


def test_fields_of_several_records_are_mapped_together():
    left, right = Pair(torch.zeros(1), torch.ones(1)), Pair(torch.ones(1), torch.ones(1))

    both = map_tensors(lambda *values: torch.cat(values), left, right)

    assert both.first.tolist() == [0.0, 1.0]
    assert both.second.tolist() == [1.0, 1.0]


def test_fields_that_are_none_are_not_listed():
    assert list(tensor_fields(Pair(None, torch.ones(1)))) == ["second"]
