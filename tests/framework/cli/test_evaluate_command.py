"""`celstack evaluate` as a newcomer meets it."""

import json
import shutil

import pytest

from celstack import progress


@pytest.fixture
def evaluate(command, copied_run):
    """Evaluate the run in a folder that may be spoilt."""

    def run(*arguments):
        return command("celstack", "evaluate", str(copied_run), *arguments, "--device", "cpu")

    return run


def complaint(answer):
    assert answer.code == 2
    (line,) = answer.complaint.splitlines()
    return line.removeprefix("celstack: ")


def test_a_run_scores_as_it_did_at_its_end(evaluate, copied_run):
    answer = evaluate()

    assert answer.code == 0, answer.complaint
    first, *_, same, written = answer.said.splitlines()
    assert first == f"{copied_run} after step 2, on 16 images of the split test"
    assert same == "same as in metrics.json"
    assert written.startswith(f"Written to {copied_run / 'evaluations' / 'test.json'}")


def test_what_is_written_has_settings_metrics_and_the_score_of_each_image(evaluate, copied_run):
    evaluate()

    found = json.loads((copied_run / "evaluations" / "test.json").read_text())
    assert found["settings"] == {
        "step": 2,
        "split": "test",
        "images": 16,
        "data": None,
        "set": [],
    }
    assert found["percent"] == ["ari"]
    assert found["metrics"] == json.loads((copied_run / "metrics.json").read_text())
    assert found["scores"] == json.loads((copied_run / "scores.json").read_text())
    assert {len(scores) for scores in found["scores"].values()} == {16}


def test_nothing_that_the_run_wrote_is_changed(evaluate, copied_run, small_run):
    evaluate("--split", "train")

    for path in small_run.rglob("*"):
        if path.is_file():
            assert (copied_run / path.relative_to(small_run)).read_bytes() == path.read_bytes()


def test_another_split_and_another_number_of_images(evaluate, copied_run):
    answer = evaluate("--split", "train", "--images", "5")

    assert "on 5 images of the split train" in answer.said
    assert "metrics.json" not in answer.said
    found = json.loads((copied_run / "evaluations" / "train.json").read_text())
    assert len(found["scores"]["mse"]) == 5


def test_other_metrics(evaluate):
    said = evaluate("--set", "metrics=['miou']").said

    assert "miou" in said
    assert "mse" not in said


def test_it_says_where_figures_differ_from_those_of_the_run(evaluate, copied_run):
    now = json.loads((copied_run / "metrics.json").read_text())
    (copied_run / "metrics.json").write_text(
        json.dumps({"ari": now["ari"], "mse": 7.0, "gone": 0.5})
    )

    lines = evaluate().said.splitlines()

    assert f"{'mse':>14}  {now['mse']:.4f}  differs from metrics.json: 7.0000" in lines
    assert f"{'gone':>14}  -  not measured now; metrics.json: 0.5000" in lines
    assert f"{'ari':>14}  {now['ari']:.4f}" in lines
    assert "same as in metrics.json" not in lines


def test_the_checkpoint_of_a_run_that_is_not_finished_is_scored(evaluate, copied_run):
    (copied_run / "metrics.json").unlink()

    answer = evaluate()

    assert answer.code == 0
    assert "the run is not finished: these are scores of its last checkpoint" in answer.said
    assert not (copied_run / "metrics.json").exists()


def test_metrics_whose_truth_is_missing_are_said_to_be(evaluate):
    said = evaluate("--set", "metrics=['accuracy']").said

    assert "no metrics: the images lack the ground truth that they need" in said


def test_a_metric_that_fails_costs_only_itself(evaluate, copied_run, monkeypatch):
    from celstack_kit.metrics.ari import Ari

    monkeypatch.setattr(Ari, "compute", lambda self: None)

    answer = evaluate()

    assert answer.code == 0
    reason = "it failed in compute: None is not a number"
    assert answer.complaint == (
        f"celstack: warning: metric ari has no score: {reason}; when it is mended, "
        f"evaluate again with: celstack evaluate {copied_run}\n"
    )
    assert "           mse  " in answer.said
    found = json.loads((copied_run / "evaluations" / "test.json").read_text())
    assert list(found["metrics"]) == ["mse"]
    assert found["failed"] == {"ari": reason}


def test_all_metrics_may_fail(evaluate, monkeypatch):
    from celstack_kit.metrics.mse import Mse

    monkeypatch.setattr(Mse, "compute", lambda self: None)

    answer = evaluate("--set", "metrics=['mse']")

    assert answer.code == 0
    assert "ground truth" not in answer.said


def test_progress_is_told_now_and_then_where_no_bar_can_move(evaluate, monkeypatch):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)

    assert evaluate().complaint == "evaluating images: 16 of 16\n"


# Mistakes.


def test_an_unknown_split_is_answered_with_the_known_ones(evaluate):
    assert complaint(evaluate("--split", "tset")) == (
        "--split tset: tetrominoes has the splits train, test"
    )


def test_no_images_are_refused(evaluate):
    assert complaint(evaluate("--images", "0")) == "--images 0: must be at least 1"


def test_a_device_that_is_not_there_is_refused(command, copied_run):
    answer = command("celstack", "evaluate", str(copied_run), "--device", "abacus")

    assert complaint(answer).startswith("--device abacus: cannot be used here")


def test_what_is_no_run_is_refused(command, tmp_path):
    answer = command("celstack", "evaluate", str(tmp_path))

    assert complaint(answer) == f"{tmp_path}: not a run folder (no resolved.toml)"


def test_a_damaged_checkpoint_is_refused(evaluate, copied_run):
    (copied_run / "checkpoint.pt").write_bytes(b"half a checkpo")

    assert complaint(evaluate()).startswith(f"{copied_run / 'checkpoint.pt'}: is damaged: ")


def test_a_folder_that_cannot_be_written_to_is_said_after_the_figures(evaluate, copied_run):
    (copied_run / "evaluations").write_text("")

    answer = evaluate()

    assert "mse" in answer.said
    assert complaint(answer) == f"{copied_run}: cannot write there: File exists"


def test_a_run_may_be_moved(command, copied_run, tmp_path):
    moved = shutil.move(copied_run, tmp_path / "elsewhere")

    assert command("celstack", "evaluate", str(moved), "--device", "cpu").code == 0
