"""Several seeds: which, how they do together, and what happens when one fails."""

import json
from types import SimpleNamespace

import pytest

import celstack.training.loop
from celstack.errors import CelstackError, RunFailedError
from celstack.runs.finished import read_finished
from celstack.runs.seeds import parse_seeds, save_summary, summary


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", [0, 1, 2]), ("1", [0]), ("0,1,7", [0, 1, 7]), ("9, 2", [9, 2])]
)
def test_seeds_are_a_number_or_a_list(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "1,1", "1,", "1.5", "0x"])
def test_other_words_are_no_seeds(text):
    with pytest.raises(
        CelstackError, match=r"--seeds .*: expected a number of seeds, such as 5, or"
    ):
        parse_seeds(text)


def test_a_seed_taken_for_a_number_of_runs_is_noticed():
    with pytest.raises(CelstackError, match="did you mean --seed 12345"):
        parse_seeds("12345")


@pytest.fixture
def three(fake_run):
    """Three runs, one of which is an outlier."""
    runs = [(0, 1.0, 0.9), (1, 2.0, 0.3), (2, 1.0, 0.9)]
    return [
        read_finished(fake_run(seed=seed, loss=loss, metrics={"ari": ari}))
        for seed, loss, ari in runs
    ]


def test_a_summary_has_figures_of_all_runs_and_without_outliers(three):
    found = summary(three, {})

    assert list(found).index("all") < list(found).index("without_outliers")
    assert found["all"]["ari"]["mean"] == pytest.approx(0.7)
    assert found["all"]["ari"]["deviation"] == pytest.approx(0.12**0.5)
    assert found["without_outliers"]["ari"] == pytest.approx({"mean": 0.9, "deviation": 0.0})
    assert found["outliers"] == [1]
    assert (found["split"], found["images"], found["percent"]) == ("test", 64, ["ari"])
    assert [run["reconstruction_loss"] for run in found["runs"]] == [1.0, 2.0, 1.0]


def test_a_summary_tells_what_failed(three):
    assert summary(three, {5: "no"})["failed"] == [{"seed": 5, "reason": "no"}]


def test_a_metric_without_a_number_has_no_figure(fake_run):
    run = read_finished(fake_run(metrics={"ari": None}))

    assert summary([run], {})["all"] == {"ari": None}


def test_a_summary_never_replaces_another(three):
    first, second = save_summary(three, {}), save_summary(three, {})

    assert first != second
    names = {path.name for path in first.parent.iterdir() if path.is_file()}
    assert len(names) == 4


@pytest.fixture
def seeds(command, small, tmp_path):
    """Run seeds of the small recipe and return the answer and what is left."""

    def run(*arguments):
        out = tmp_path / "runs"
        answer = command("run-recipe", small, "--out", str(out), *arguments)
        left = sorted(out.glob("my/*"))
        return SimpleNamespace(
            answer=answer,
            folders=[path for path in left if path.is_dir()],
            files=[path for path in left if path.is_file()],
        )

    return run


def test_every_seed_is_a_run_and_all_are_summed_up(seeds):
    ran = seeds("--seeds", "4,2")

    assert ran.answer.code == 0
    assert {folder.name.split("-seed")[1] for folder in ran.folders} == {"4", "2"}
    record, table = ran.files
    assert record.name.endswith("-seeds.json")
    assert [run["seed"] for run in json.loads(record.read_text())["runs"]] == [4, 2]
    assert table.read_text(encoding="utf-8") in ran.answer.said + "\n"
    assert ran.answer.said.splitlines()[0] == "seed 4: run 1 of 2"


def test_quiet_seeds_print_their_folders_and_nothing_else(seeds):
    ran = seeds("--seeds", "2", "--quiet")

    assert sorted(ran.answer.said.splitlines()) == [str(folder) for folder in ran.folders]
    assert len(ran.files) == 2


@pytest.mark.parametrize("other", [["--seed", "3"], ["--set", "seed=3"], ["--set", "seed = 3"]])
def test_seed_and_seeds_together_are_refused(seeds, other):
    ran = seeds("--seeds", "2", *other)

    assert ran.answer.code == 2
    assert ran.answer.complaint == (
        "celstack: --seeds: sets the seeds already; remove --seed and --set seed\n"
    )
    assert not ran.folders


def test_a_mistake_is_told_before_the_first_seed_runs(seeds):
    ran = seeds("--seeds", "0,-1")

    assert ran.answer.code == 2
    assert "seed: must be an integer of at least 0" in ran.answer.complaint
    assert not ran.folders


@pytest.fixture
def fail(monkeypatch):
    """Let the run of one seed end with an error."""
    run = celstack.training.loop.run

    def break_seed(seed, error):
        def maybe(assembly, *rest):
            if assembly.seed == seed:
                raise error
            return run(assembly, *rest)

        monkeypatch.setattr(celstack.training.loop, "run", maybe)

    return break_seed


def test_a_seed_that_fails_costs_only_itself(seeds, fail):
    fail(1, RunFailedError("step 1: the loss is nan"))

    ran = seeds("--seeds", "3")

    assert ran.answer.code == 1
    assert ran.answer.complaint.splitlines() == [
        "celstack: seed 1 failed: step 1: the loss is nan",
        "celstack: 1 of 3 runs failed: seed 1",
    ]
    found = json.loads(ran.files[0].read_text())
    assert [run["seed"] for run in found["runs"]] == [0, 2]
    assert found["failed"] == [{"seed": 1, "reason": "step 1: the loss is nan"}]


def test_when_all_fail_there_is_nothing_to_sum_up(seeds, fail):
    fail(0, RunFailedError("no"))

    ran = seeds("--seeds", "1")

    assert (ran.answer.code, ran.files) == (1, [])


def test_ctrl_c_keeps_and_sums_up_what_is_finished(seeds, fail):
    fail(1, KeyboardInterrupt())

    ran = seeds("--seeds", "3")

    assert ran.answer.code == 130
    assert ran.answer.complaint == (
        "celstack: Interrupted; remaining seeds not started (--seed 2); no checkpoint yet. "
        f"Start again with: run-recipe --resume {ran.folders[1]}\n"
    )
    assert [run["seed"] for run in json.loads(ran.files[0].read_text())["runs"]] == [0]
    assert "| my | 1 |" in ran.answer.said


def test_a_summary_that_cannot_be_written_is_no_reason_to_hide_it(seeds, monkeypatch):
    def refuse(*rest):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("celstack.runs.seeds.write_atomic", refuse)

    ran = seeds("--seeds", "1")

    assert "| my | 1 |" in ran.answer.said
    assert ran.answer.complaint.endswith("cannot be written: No space left on device\n")
