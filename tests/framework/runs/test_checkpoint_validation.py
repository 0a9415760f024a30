import pytest
import torch

from celstack.runs.checkpoint_validation import (
    checked_optimizer_state,
    state_dict_mismatches,
    tensor_mismatch,
)


def make():
    """Return Adam over two weights, of which only the first was ever moved."""
    weights = [torch.nn.Parameter(torch.ones(2, 3)), torch.nn.Parameter(torch.ones(4))]
    optimizer = torch.optim.Adam([{"name": "all", "params": weights, "lr": 0.5}], fused=True)
    weights[0].grad = torch.ones(2, 3)
    optimizer.step()
    return optimizer


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.zeros(2), ""),
        ("red", "'red', not a tensor"),
        (torch.zeros(3), "[3], not [2]"),
        (torch.zeros(2, dtype=torch.float64), "torch.float64, not torch.float32"),
        (torch.zeros(2).to_sparse(), "not a dense tensor"),
        (torch.zeros(2, device="meta"), "not a dense tensor"),
    ],
)
def test_what_is_wrong_with_a_tensor_is_said(value, text):
    assert tensor_mismatch(value, torch.ones(2)) == text


def test_weights_are_named_by_what_is_wrong_with_them():
    wanted = {"a": torch.ones(1), "b": torch.ones(1), "c": torch.ones(1)}

    odd = state_dict_mismatches(
        wanted, {"a": torch.ones(1), "b": torch.ones(2), "d\n": torch.ones(1)}
    )

    assert odd == [
        "c is missing",
        "'d\\n' is not in the recipe's model",
        "b is [2], not [1]",
    ]


def test_moments_come_back_and_settings_are_the_optimiser_s_own():
    state, other = make().state_dict(), make()
    state["param_groups"][0]["betas"] = "dangerous"

    fitted = checked_optimizer_state(other, state)

    assert fitted["state"] is state["state"]
    assert fitted["param_groups"][0]["betas"] == (0.9, 0.999)


# Fused kernels do not look at sizes: with these, they would write where they should not.
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda s: s["state"][0].update(exp_avg=torch.ones(1)), r"exp_avg .* 0 is \[1\], not"),
        (lambda s: s["state"][0].update(step=torch.ones(2)), r"step of parameter 0 is \[2\]"),
        (lambda s: s["state"][0].pop("exp_avg_sq"), "has an incomplete state of parameter 0"),
        (lambda s: s["state"].update({7: {}}), "has an unknown parameter 7"),
        (lambda s: s["state"].update({True: {}}), "has an unknown parameter true"),
        (lambda s: s.update(state=[]), "its optimizer has no state"),
        (lambda s: s.pop("param_groups"), "its optimizer has no state"),
        (lambda s: s["param_groups"].append("x"), "other parameters"),
        (lambda s: s["param_groups"][0].update(params=[0]), "other parameters"),
        (lambda s: s["param_groups"][0].update(name="none"), "other parameters"),
    ],
)
def test_what_does_not_fit_is_refused(change, text):
    state = make().state_dict()
    change(state)

    with pytest.raises(ValueError, match=text):
        checked_optimizer_state(make(), state)
