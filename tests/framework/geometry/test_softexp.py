import math

import pytest
import torch
from torch.autograd import gradcheck

from celstack.geometry.soft_bounds import softexp


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (-200.0, 0.0),
        (0.0, 1.0),
        (1.0, math.e),
        (8.0, math.exp(8)),
        (9.0, 2 * math.exp(8)),  # one further along the tangent
        (108.0, 101 * math.exp(8)),
    ],
)
def test_values(value, result):
    assert softexp(torch.tensor(value)).item() == pytest.approx(result, rel=1e-6)


def test_gradients_are_true_and_never_stop():
    values = torch.tensor([-2.0, 0.0, 7.9, 8.1, 500.0], dtype=torch.float64, requires_grad=True)

    softexp(values).sum().backward()

    assert values.grad[-1] == pytest.approx(math.exp(8))
    assert gradcheck(softexp, (values,))
