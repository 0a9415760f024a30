import pytest

from celstack.recipe.assembly import Stage
from celstack.recipe.schedule import schedule


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


def test_rates_rise_in_a_warmup_and_fall_along_a_cosine():
    stages = [Stage(steps=3), Stage(steps=9, schedule="cosine", warmup=1)]
    first, second = schedule(stages, images=8, batch_size=4)

    assert [first.rate_factor(step) for step in range(3)] == [1.0, 1.0, 1.0]
    assert second.rate_factor(3) == 0.5
    assert second.rate_factor(4) == 1.0
    assert second.rate_factor(8) == pytest.approx(0.5)
    assert second.rate_factor(12) == pytest.approx(0.0, abs=1e-12)


def test_a_warmup_alone_ends_at_the_full_rate():
    (only,) = schedule([Stage(steps=4, warmup=2)], images=8, batch_size=4)

    factors = [only.rate_factor(step) for step in range(4)]
    assert factors == pytest.approx([1 / 3, 2 / 3, 1.0, 1.0])
