"""Loops are compiled, and shared out among threads."""

from math import isnan, nan

import numba
import numpy as np
import pytest
import torch

from celstack.model.numba_jit import compiled, parallel_for

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
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_every_image_is_worked_on_once(monkeypatch, threads, count):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    times = np.zeros(count)

    def work(some):
        times[some] += 1

    parallel_for(work, count)

    assert (times == 1).all()


def test_a_fault_in_a_thread_is_told():
    def work(some):
        raise ValueError(some)

    with pytest.raises(ValueError, match="slice"):
        parallel_for(work, 3)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Return a function that compiles and calls, as another process would, and what it kept."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    file = tmp_path / "loops.py"
    file.write_text(SOURCE)

    def add():
        names = {"__file__": str(file), "__name__": "loops"}
        exec(compile(SOURCE, str(file), "exec"), names)
        loops = compiled(names["add"])
        return loops, loops(np.arange(5.0))

    return add, lambda: sorted((tmp_path / "kept").rglob("*.nb*"))


def hits(loops):
    return sum(loops.stats.cache_hits.values())


def test_what_was_compiled_is_kept_for_the_next_process(kept):
    add, files = kept

    first, second = add(), add()

    assert (hits(first[0]), hits(second[0])) == (0, 1)
    assert first[1] == second[1] == 10.0
    assert files()


def test_what_is_damaged_is_compiled_again(kept):
    add, files = kept
    add()
    for file in files():
        file.write_bytes(b"")

    loops, answer = add()

    assert (hits(loops), answer) == (0, 10.0)


def test_a_full_disk_keeps_nothing_and_stops_nothing(kept, monkeypatch):
    add, files = kept

    def save(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", save)

    assert add()[1] == 10.0
    assert not files()


def test_a_file_in_the_working_folder_does_not_say_where_results_are(kept, tmp_path):
    add, files = kept
    numba.config.CACHE_DIR = str(tmp_path / "hostile")

    add()

    assert files()
    assert not (tmp_path / "hostile").exists()
