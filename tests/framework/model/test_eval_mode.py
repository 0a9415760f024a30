import pytest
import torch
from torch import nn

from celstack.model.eval_mode import eval_mode


@pytest.mark.parametrize("training", [True, False])
def test_all_modules_are_in_eval_mode_inside_and_in_their_own_mode_afterwards(training):
    module = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(1)).train(training)

    with eval_mode(module):
        inside = [part.training for part in module.modules()]

    assert inside == [False] * 3
    assert [part.training for part in module.modules()] == [training] * 3


def test_the_mode_is_restored_when_the_block_raises():
    module = nn.Dropout().train()

    with pytest.raises(ZeroDivisionError), eval_mode(module):
        raise ZeroDivisionError

    assert module.training


def test_gradients_are_left_as_they_are():
    with eval_mode(nn.Dropout()):
        assert torch.is_grad_enabled()
