import pytest

from celstack.assembly import Stage
from celstack.curriculum import schedule


def spans(*stages, images=10, batch_size=4):
    return [(p.start, p.end) for p in schedule(stages, images, batch_size)]


def test_stages_are_laid_end_to_end():
    assert spans(Stage(steps=5), Stage(steps=2), Stage(steps=1)) == [(0, 5), (5, 7), (7, 8)]


@pytest.mark.parametrize(
    ("images", "batch_size", "steps"),
    [(8, 4, 2), (9, 4, 3), (3, 4, 1), (10, 1, 10)],
)
def test_the_last_batch_of_an_epoch_may_be_smaller(images, batch_size, steps):
    assert spans(Stage(epochs=1), images=images, batch_size=batch_size) == [(0, steps)]


def test_epochs_and_steps_may_follow_one_another():
    assert spans(Stage(epochs=2), Stage(steps=1), Stage(epochs=1)) == [(0, 6), (6, 7), (7, 10)]


def test_a_stage_is_called_by_its_name_or_by_its_number_from_one():
    phases = schedule([Stage(steps=1), Stage(name="colours", steps=1), Stage(steps=1)], 1, 1)

    assert [phase.title for phase in phases] == ["stage 1", "colours", "stage 3"]


def test_phases_keep_their_stages():
    stages = [Stage(steps=1, freeze_sprites=True), Stage(steps=2)]

    assert [phase.stage for phase in schedule(stages, 1, 1)] == stages
