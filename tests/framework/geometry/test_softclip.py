import pytest
import torch
from torch.autograd import gradcheck

from celstack.geometry.soft_bounds import softclip


@pytest.mark.parametrize(
    ("value", "clipped"),
    [(0.0, 0.0), (0.3, 0.3), (1.0, 1.0), (2.0, 1.01), (-1.0, -0.01), (101.0, 2.0)],
)
def test_values(value, clipped):
    assert softclip(torch.tensor(value)).item() == pytest.approx(clipped, abs=1e-6)


@pytest.mark.parametrize(("value", "slope"), [(-3.0, 0.01), (0.5, 1.0), (3.0, 0.01)])
def test_the_slope_is_small_outside_and_never_zero(value, slope):
    values = torch.tensor(value, requires_grad=True)

    softclip(values).backward()

    assert values.grad.item() == pytest.approx(slope)


def test_gradients_are_true():
    values = torch.tensor([-2.0, 0.2, 0.9, 1.5], dtype=torch.float64, requires_grad=True)

    assert gradcheck(softclip, (values,))
