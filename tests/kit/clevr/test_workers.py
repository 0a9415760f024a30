import os

import attrs
import numpy as np
import pytest

from celstack.errors import CelstackError
from celstack_kit.clevr.workers import (
    CHUNK_IMAGES,
    RenderJob,
    _start_worker,
    available_cpus,
    render_chunks,
    render_image,
)

pytest.importorskip("mitsuba")

JOB = RenderJob(seed=0, split=0, min_objects=3, max_objects=6, samples=4, side=24)


def whole(folder, count=12, number=2):
    """All images, instances and classes of a job."""
    made = list(render_chunks(JOB, count, folder, number))
    return [np.concatenate(arrays) for arrays in zip(*made, strict=True)]


@pytest.fixture(scope="module")
def dozen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dozen")
    return folder, whole(folder)


def test_an_image_depends_on_its_index_alone(dozen):
    _, arrays = dozen

    for index in (0, 11):
        for array, expected in zip(arrays, render_image(JOB, index), strict=True):
            np.testing.assert_array_equal(array[index], expected)


def test_the_number_of_processes_changes_nothing(dozen, tmp_path):
    _, arrays = dozen

    for array, expected in zip(whole(tmp_path, 10, number=1), arrays, strict=True):
        np.testing.assert_array_equal(array, expected[:10])


def test_all_images_differ(dozen):
    _, (images, _, _) = dozen

    assert len({image.tobytes() for image in images}) == 12


def test_splits_and_seeds_have_images_of_their_own():
    jobs = [JOB, attrs.evolve(JOB, split=1), attrs.evolve(JOB, seed=1)]

    assert len({render_image(job, 0).image.tobytes() for job in jobs}) == 3


def test_every_object_is_seen_and_has_one_class(dozen):
    _, (_, instances, classes) = dozen

    for ids, kinds in zip(instances, classes, strict=True):
        numbers, pixels = np.unique(ids[ids > 0], return_counts=True)
        assert numbers.tolist() == list(range(1, len(numbers) + 1))
        assert 3 <= len(numbers) <= 6
        assert pixels.min() >= 200 * (24 / 192) ** 2
        assert all(len(np.unique(kinds[ids == number])) == 1 for number in numbers)
    assert np.array_equal(instances > 0, classes > 0)
    assert classes.max() <= 6


def test_finished_chunks_are_kept_when_the_work_is_interrupted(dozen, tmp_path):
    interrupted = render_chunks(JOB, 10**4, tmp_path, 1)
    next(interrupted)
    interrupted.close()
    kept = tmp_path / f"0-{CHUNK_IMAGES}.npz"
    before = kept.stat().st_mtime_ns

    arrays = whole(tmp_path)

    assert kept.stat().st_mtime_ns == before
    for array, expected in zip(arrays, dozen[1], strict=True):
        np.testing.assert_array_equal(array, expected)


def cut_off(data):
    return data[:500]


def scrambled(data):
    return data[:200] + bytes(100) + data[300:]


@pytest.mark.parametrize("damage", [cut_off, scrambled])
def test_a_damaged_chunk_is_named(damage, dozen, tmp_path):
    path = tmp_path / f"0-{CHUNK_IMAGES}.npz"
    path.write_bytes(damage((dozen[0] / path.name).read_bytes()))

    with pytest.raises(CelstackError) as refused:
        whole(tmp_path, CHUNK_IMAGES)

    advice = f"{path}: damaged; delete it to render it again ("
    assert str(refused.value).startswith(advice)


def test_a_process_that_fails_is_told_with_its_reason(tmp_path):
    hopeless = attrs.evolve(JOB, min_objects=3, max_objects=2)

    with pytest.raises(CelstackError) as refused:
        list(render_chunks(hopeless, 2, tmp_path, 1))

    assert str(refused.value) == "clevr6: a rendering process failed (ValueError: low >= high)"


def test_a_process_ends_with_the_one_that_feeds_it(tmp_path):
    endless = [(start, start + 1) for start in range(10**5)]
    worker = _start_worker(JOB, tmp_path, 0, endless)

    worker.stdin.close()  # as happens to it when we are killed

    assert worker.wait(timeout=60) == 1
    assert (tmp_path / "0.log").read_text() == ""


def test_there_is_a_process_for_each_processor():
    assert 1 <= available_cpus() <= os.cpu_count()
