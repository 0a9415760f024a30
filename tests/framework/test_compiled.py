"""Loops are compiled, and shared out among threads."""

from math import isnan, nan

import numpy as np
import pytest
import torch

from celstack.compiled import compiled, share

SOURCE = """
def add(values):
    total = 0.0
    for value in values:
        total += value
    return total
"""


def made_of_text():
    """Return a function without a file, beside which nothing can be kept."""
    names = {}
    exec(SOURCE, names)
    return names["add"]


def test_what_cannot_be_kept_is_compiled_all_the_same():
    add = compiled(made_of_text())

    assert add(np.arange(5.0)) == 10.0
    assert add.signatures


def test_what_is_not_a_number_stays_so():
    assert isnan(compiled(made_of_text())(np.array([1.0, nan, 1.0])))


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_every_image_is_worked_on_once(monkeypatch, threads, count):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    times = np.zeros(count)

    def work(some):
        times[some] += 1

    share(work, count)

    assert (times == 1).all()


def test_a_fault_in_a_thread_is_told():
    def work(some):
        raise ValueError(some)

    with pytest.raises(ValueError, match="slice"):
        share(work, 3)
