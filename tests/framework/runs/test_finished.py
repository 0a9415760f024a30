import json
import math

import pytest

from celstack.errors import CelstackError
from celstack.runs.finished import MAX_FINAL_LOSS_STEPS, check_run, final_loss, read_finished


@pytest.fixture
def log(tmp_path):
    """Write a log of these lines and return its path."""

    def write(*lines):
        path = tmp_path / "log.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write


def step(number, loss):
    return {"step": number, "reconstruction": loss, "loss": loss + 1}


def test_what_a_run_was_and_how_well_it_did(small_run):
    run = read_finished(small_run)

    assert (run.name, run.seed, run.split, run.images) == ("small", 0, "test", 16)
    assert run.metrics == json.loads((small_run / "metrics.json").read_text())
    assert run.percent == {"ari"}
    assert run.recipe["sprites"]["count"] == 2
    lines = map(json.loads, (small_run / "log.jsonl").read_text().splitlines())
    *_, last = (line for line in lines if "reconstruction" in line)
    assert run.loss == last["reconstruction"]


def test_a_metric_without_a_number_is_nan(fake_run):
    assert math.isnan(read_finished(fake_run(metrics={"ari": None})).metrics["ari"])


def test_published_figures_are_in_percent_and_so_are_their_metrics(fake_run):
    published = {"them": {"accuracy": 89.4}}
    run = read_finished(fake_run(metrics={"accuracy": 0.5}, percent=(), published=published))

    assert run.published == published
    assert run.percent == {"accuracy"}


def test_what_is_not_there_is_no_run(tmp_path):
    with pytest.raises(CelstackError, match="there is no such folder"):
        check_run(tmp_path / "missing")


def test_a_file_is_no_run(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(CelstackError, match="is a file, not a run folder"):
        check_run(tmp_path / "file")


def test_any_folder_is_no_run(tmp_path):
    with pytest.raises(CelstackError, match=r"not a run folder \(no resolved\.toml\)$"):
        check_run(tmp_path)


def test_the_folder_above_runs_suggests_the_last(fake_run):
    first, second = fake_run(seed=1), fake_run(seed=2)

    with pytest.raises(CelstackError) as refused:
        check_run(first.parent)

    assert str(refused.value).endswith(f"it contains runs, the latest is {second}")


def test_a_run_that_is_not_finished_is_said_to_be(fake_run):
    folder = fake_run()
    (folder / "metrics.json").unlink()

    with pytest.raises(CelstackError) as refused:
        read_finished(folder)

    assert str(refused.value) == (
        f"{folder}: not finished (no metrics.json); resume it with "
        f"'run-recipe --resume {folder}', or score its last checkpoint with "
        f"'celstack evaluate {folder}'"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metrics.json", "{"),
        ("metrics.json", "[1]"),
        ("metrics.json", '{"ari": "good"}'),
        ("evaluation.json", "nonsense"),
        ("evaluation.json", '{"images": "many"}'),
        ("evaluation.json", '{"percent": 1}'),
        ("evaluation.json", '{"files": null}'),
        ("resolved.toml", "seed = = 1"),
        ("resolved.toml", "\udcff"),
        ("resolved.toml", "seed = 1"),
    ],
)
def test_a_damaged_file_is_named(fake_run, name, text):
    folder = fake_run()
    (folder / name).write_text(text, encoding="utf-8", errors="surrogateescape")

    with pytest.raises(CelstackError) as refused:
        read_finished(folder)

    assert str(refused.value).startswith(f"{folder / name}: ")


def test_the_final_loss_is_the_mean_over_the_last_tenth_of_all_steps(log):
    path = log(*(step(number, float(number)) for number in range(1, 31)))

    assert final_loss(path) == 29.0  # of 28, 29 and 30


def test_the_final_loss_is_that_of_few_steps_in_a_long_run(log):
    few = MAX_FINAL_LOSS_STEPS
    path = log(*(step(n, float(n > 20 * few)) for n in range(1, 21 * few + 1)))

    assert final_loss(path) == 1.0


def test_lines_that_are_no_steps_do_not_count(log):
    path = log(step(1, 0.25), {"step": 1, "reassigned": [2]}, {"step": 1, "begins": "x"})

    assert final_loss(path) == 0.25


def test_without_a_log_there_is_no_final_loss(tmp_path, log):
    assert final_loss(tmp_path / "missing") is None
    assert final_loss(log({"step": 0, "begins": "only"})) is None
    assert final_loss(log("no step")) is None


def test_the_final_loss_reads_enough_steps_among_other_lines(log):
    few = MAX_FINAL_LOSS_STEPS
    other = {"step": 1, "validation": {}}
    steps = (step(n, float(n > 10 * few - few // 2)) for n in range(1, 10 * few + 1))

    assert (
        final_loss(log(*(line for one in steps for line in (one, other, other, other)))) == 0.5
    )
