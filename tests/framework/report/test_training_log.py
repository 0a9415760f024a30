import json

import pytest

from celstack.report.training_log import (
    MAX_LOSS_POINTS,
    MAX_USAGE_POINTS,
    LossPoint,
    StageStart,
    read_training_log,
)


@pytest.fixture
def log(tmp_path):
    """Write a log of these lines and read its history."""

    def write(*lines):
        path = tmp_path / "log.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return read_training_log(path)

    return write


def steps(count, **more):
    return [{"step": n, "loss": float(n), **more} for n in range(1, count + 1)]


def test_a_short_run_has_all_its_losses(log):
    history = log(*steps(3))

    assert history.steps == 3
    assert history.losses == [LossPoint(1, 1.0), LossPoint(2, 2.0), LossPoint(3, 3.0)]


def test_a_long_run_has_means_over_stretches_of_it(log):
    history = log(*steps(2 * MAX_LOSS_POINTS))

    assert len(history.losses) == MAX_LOSS_POINTS
    assert history.losses[0] == LossPoint(2, 1.5)
    assert history.losses[-1] == LossPoint(2 * MAX_LOSS_POINTS, 2 * MAX_LOSS_POINTS - 0.5)


def test_stages_and_new_starts_are_told_with_their_steps(log):
    history = log(
        {"step": 0, "begins": "placing"},
        {"step": 4, "begins": "learning"},
        {"step": 6, "reassigned": [1]},
    )

    assert history.stages == [StageStart("placing", 0), StageStart("learning", 4)]
    assert history.reassigned == [6]


def test_usage_is_in_shares(log):
    history = log({"step": 10, "usage": [1, 3]}, {"step": 20, "usage": [0, 0]})

    assert [(one.step, one.shares) for one in history.usage] == [
        (10, [0.25, 0.75]),
        (20, [0, 0]),
    ]


def test_usage_of_many_steps_is_counted_together(log):
    odd, even = [{"step": n, "usage": counts} for n, counts in ((1, [4, 0]), (2, [0, 12]))]

    history = log(*[odd, even] * MAX_USAGE_POINTS)

    assert len(history.usage) == MAX_USAGE_POINTS
    assert history.usage[0].shares == [0.25, 0.75]


def test_the_time_between_being_stopped_and_going_on_is_left_out(log):
    times = [0.0, 1.0, 2.0, 9000.0, 9001.0]

    history = log(*({"step": n, "time": time} for n, time in enumerate(times)))

    assert history.seconds == 3.0


def test_steps_that_take_minutes_are_no_pauses(log):
    history = log(*({"step": n, "time": 100.0 * n} for n in range(5)))

    assert history.seconds == 400.0


def test_what_makes_no_sense_is_passed_over(tmp_path):
    path = tmp_path / "log.jsonl"
    odd = ['{"step": 2, "lo', "[]", '{"step": "x", "loss": 1}', '{"step": 3, "loss": NaN}']
    path.write_text("\n".join(['{"step": 1, "loss": 0.5}', *odd]))

    assert read_training_log(path).losses == [LossPoint(1, 0.5)]


def test_a_run_without_a_log_has_no_history(tmp_path):
    history = read_training_log(tmp_path / "log.jsonl")

    assert (history.steps, history.losses, history.seconds) == (0, [], None)
