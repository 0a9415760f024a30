import pytest
import torch

from celstack.errors import CelstackError
from celstack.system import find_device


def test_a_device_is_found_by_its_name():
    assert find_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize(
    ("cuda", "mps", "best"),
    [
        (True, True, "cuda"),
        (True, False, "cuda"),
        (False, True, "mps"),
        (False, False, "cpu"),
    ],
)
def test_auto_is_the_best_there_is(monkeypatch, cuda, mps, best):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    assert find_device("auto") == torch.device(best)


@pytest.mark.parametrize("name", ["cpux", "", "cpu:x", "cuda:99", "hpu", "privateuseone"])
# Torch warns of its own accord while it fails.
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_used_is_refused_in_one_line(name):
    with pytest.raises(CelstackError) as refused:
        find_device(name)

    assert str(refused.value).startswith(f"--device {name}: cannot be used here: ")
    assert "\n" not in str(refused.value)


def test_a_device_that_computes_nothing_is_refused():
    with pytest.raises(CelstackError, match="--device meta: cannot be used here"):
        find_device("meta")


def test_a_refusal_without_words_is_told_by_its_kind(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError

    monkeypatch.setattr(torch, "zeros", refuse)

    with pytest.raises(CelstackError, match="cannot be used here: AssertionError"):
        find_device("cpu")
