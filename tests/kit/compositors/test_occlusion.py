from itertools import permutations

import pytest
import torch

from celstack import CelstackError
from celstack.testing import check_compositor
from celstack_kit.compositors.occlusion import Occlusion, nearest_order


def matrix_of(*logits, layers=3, training=True, ordering=False):
    occlusion = Occlusion(layers=layers, ordering=ordering)
    return occlusion.occlusion(torch.tensor([logits]), training)[0]


@pytest.mark.parametrize("ordering", [False, True])
def test_it_keeps_the_promises_of_a_compositor(ordering):
    check_compositor(Occlusion(layers=3, ordering=ordering))


def test_logits_fill_the_lower_triangle_row_by_row():
    matrix = matrix_of(100.0, -100.0, 100.0)

    expected = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    torch.testing.assert_close(matrix, torch.tensor(expected).float())


def test_a_positive_logit_lets_the_later_layer_hide_the_earlier():
    matrix = matrix_of(3.0, layers=2)

    assert matrix[1, 0] > 0.9 > 0.1 > matrix[0, 1]


def test_at_the_start_every_pair_is_undecided():
    matrix = matrix_of(0.0, 0.0, 0.0)

    torch.testing.assert_close(matrix, 0.5 - 0.5 * torch.eye(3))


def test_a_tie_is_broken_when_not_training():
    matrix = matrix_of(0.0, layers=2, training=False)

    torch.testing.assert_close(matrix, torch.tensor([[0.0, 0.0], [1.0, 0.0]]))


def test_a_single_layer_needs_no_logits():
    occlusion = Occlusion(layers=1)

    assert occlusion.num_logits == 0
    assert occlusion.occlusion(torch.zeros(2, 0), training=True).shape == (2, 1, 1)


def test_gradients_reach_the_logits():
    logits = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)

    assert torch.autograd.gradcheck(lambda x: Occlusion(layers=3).occlusion(x, True), logits)


def test_a_cycle_stays_without_ordering_and_is_broken_with_it():
    cyclic = matrix_of(2.0, -2.0, 2.0, training=False)  # 1 over 0, 0 over 2, 2 over 1
    ordered = matrix_of(2.0, -1.0, 2.0, training=False, ordering=True)

    assert cyclic[1, 0] == cyclic[0, 2] == cyclic[2, 1] == 1
    # The weakest relation gives way: 2 over 1 over 0.
    torch.testing.assert_close(ordered, torch.ones(3, 3).tril(-1))


@pytest.mark.parametrize("layers", [1, 2, 3, 4, 5])
def test_the_nearest_order_is_the_nearest_of_all(layers):
    torch.manual_seed(layers)
    lower = torch.rand(20, layers, layers).tril(-1)
    matrices = lower + (1 - lower.mT).triu(1)

    found = nearest_order(matrices)

    for matrix, order in zip(matrices, found, strict=True):
        distances = []
        for ranks in permutations(range(layers)):
            rank = torch.tensor(ranks)
            candidate = (rank[:, None] > rank[None]).float()
            distances.append((matrix - candidate).square().sum().item())
        assert (matrix - order).square().sum().item() == pytest.approx(min(distances))


def test_too_many_layers_for_an_ordering_are_refused():
    with pytest.raises(CelstackError, match="at most 12 layers"):
        Occlusion(layers=13, ordering=True)
