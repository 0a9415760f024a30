"""Tiny tensors are slower on many threads, and the machine may be shared."""

import pytest
import torch


@pytest.fixture(scope="package", autouse=True)
def one_thread():
    """Compute on one thread here, and as before elsewhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def same_numbers():
    """Draw the same numbers each time, and leave the random state alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
