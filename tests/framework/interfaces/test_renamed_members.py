"""Plugins written for 0.1.0 override methods by their old names."""

import pytest
import torch

from celstack import Dataset
from celstack.model.transform_chain import TransformChain
from celstack.testing import check_transform
from celstack.testing.model import PlainSelector
from celstack.testing.parts import PlainDataset, PlainWarp


class OldSelector(PlainSelector):
    def twins(self, decomposer):
        return [(0, 1)]

    def missed(self, images, scene, decomposer, unused):
        return {unused[0]: torch.ones(4, 2, 2)}


class OldWarp(PlainWarp):
    def matrix(self, params):
        return super().matrix(2 * params)

    def pull(self, points, params):
        return super().pull(points, 2 * params)

    def place(self, matrix):
        return super().place(matrix) / 2


def test_a_selector_may_override_twins_and_missed():
    assert OldSelector().find_duplicates(None) == [(0, 1)]
    assert OldSelector().propose_sprites(None, None, None, [3]).keys() == {3}


def test_a_warp_may_override_place():
    check_transform(OldWarp())
    chain = TransformChain([OldWarp()])
    chain.prepare(3)

    params, _ = chain.params_from_matrix(torch.tensor([[[1.0, 0.0, -0.5], [0.0, 1.0, 0.0]]]))

    assert params.tolist() == [[0.25, 0.0]]


def test_new_members_can_be_called_by_their_old_names():
    matrix = torch.tensor([[[1.0, 0.0, -0.5], [0.0, 1.0, 0.0]]])

    assert PlainWarp().place(matrix).tolist() == [[0.5, 0.0]]
    assert PlainSelector().twins(None) == []
    assert PlainSelector.missed is PlainSelector.propose_sprites
    assert PlainDataset().most_objects == PlainDataset().max_objects == 1


class OldDataset(PlainDataset):
    most_objects = 4


class OldCrowd(OldDataset):
    def __init__(self):
        self.most_objects = 7


class Unbounded(OldDataset):
    @property
    def most_objects(self):
        return 9


@pytest.mark.parametrize(("kind", "most"), [(OldDataset, 4), (OldCrowd, 7), (Unbounded, 9)])
def test_a_dataset_may_set_most_objects(kind, most):
    assert kind().max_objects == kind().most_objects == most
    assert Dataset.max_objects is None
