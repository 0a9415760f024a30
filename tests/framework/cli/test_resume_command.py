"""`run-recipe --resume` as a newcomer meets it."""

import json
import os
import subprocess
import sys

import pytest
import torch

from celstack.runs.directory import RunDirectory
from celstack.runs.finished import read_recipe_json


@pytest.fixture
def resume(command, copied_run):
    """Resume the run in a folder that may be spoilt."""

    def run(*arguments):
        return command("run-recipe", "--resume", str(copied_run), *arguments, "--device", "cpu")

    return run


@pytest.fixture
def unfinished(copied_run):
    """The folder of a run that was stopped after its last step, before it was scored."""
    (copied_run / "metrics.json").unlink()
    return copied_run


def complaint(answer, folder):
    assert answer.code == 2, answer.complaint
    (line,) = answer.complaint.splitlines()
    return line.removeprefix("celstack: ").replace(str(folder), "RUN")


def change_checkpoint(folder, **changes):
    path = folder / "checkpoint.pt"
    torch.save({**torch.load(path, weights_only=True), **changes}, path)


def test_a_finished_run_is_said_to_be_and_nothing_is_done(resume, copied_run):
    before = {path: path.stat().st_mtime_ns for path in copied_run.rglob("*")}

    answer = resume()

    assert answer.code == 0
    assert answer.said == f"{copied_run}: already finished\n"
    assert {path: path.stat().st_mtime_ns for path in copied_run.rglob("*")} == before


def test_a_finished_run_is_told_in_few_words_when_asked_to(resume, copied_run):
    assert resume("--quiet").said == f"{copied_run}\n"


def test_a_run_that_goes_on_ends_by_saying_where_to_look(resume, unfinished, small_run):
    answer = resume()

    assert answer.code == 0, answer.complaint
    assert f"Examples: {unfinished / 'examples.png'}" in answer.said
    scores = [json.loads((run / "metrics.json").read_text()) for run in (unfinished, small_run)]
    assert scores[0] == scores[1]


def test_a_run_that_is_killed_while_its_page_is_written_writes_it_when_resumed(
    command, small, tmp_path
):
    def killed(directory, page):
        (directory.folder / "report.html").write_text("Training: step 1 of 2.")
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunDirectory, "save_page", killed)
        options = ["--set", 'observers=["report"]', "--out", str(tmp_path / "runs")]
        stopped = command("run-recipe", small, *options)
    (folder,) = tmp_path.glob("runs/*/*")
    scores = (folder / "metrics.json").read_text()
    assert stopped.code == 130

    resumed = command("run-recipe", "--resume", str(folder))

    assert resumed.code == 0, resumed.complaint
    page = (folder / "report.html").read_text("utf-8")
    assert "Training: step" not in page
    assert "A sprite is a small image" in page
    assert (folder / "metrics.json").read_text() == scores
    assert command("run-recipe", "--resume", str(folder)).said.endswith("already finished\n")


def test_the_recipe_that_is_kept_is_not_written_anew(resume, unfinished, small_run):
    resume()

    for name in ("resolved.toml", "recipe.toml", "environment.json"):
        assert (unfinished / name).read_bytes() == (small_run / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "left_out"),
    [
        (["smoke.toml"], "the recipe"),
        (["--seed", "0"], "--seed"),
        (["--seeds", "2"], "--seeds"),
        (["--set", "seed=1", "--out", "runs"], "--set, --out"),
    ],
)
def test_what_contradicts_is_refused(resume, copied_run, arguments, left_out):
    assert complaint(resume(*arguments), copied_run) == (
        f"--resume: uses the recipe and the folder of the run; remove {left_out}"
    )


def test_neither_a_recipe_nor_a_run_is_refused(command):
    answer = command("run-recipe")

    assert answer.code == 2
    assert answer.complaint.startswith("celstack: no recipe given; name one ")


def test_a_folder_that_is_no_run_is_refused(command, copied_run):
    above = copied_run.parent

    answer = command("run-recipe", "--resume", str(above))

    assert complaint(answer, copied_run) == (
        f"{above}: not a run folder (no resolved.toml); it contains runs, the latest is RUN"
    )


def test_a_run_that_was_stopped_before_its_first_checkpoint_starts_again(
    resume, unfinished, small_run, log_of
):
    (unfinished / "checkpoint.pt").unlink()

    assert resume().code == 0
    assert log_of(unfinished) == log_of(small_run)


def test_a_second_process_is_refused(resume, unfinished):
    with RunDirectory(unfinished).locked():
        line = complaint(resume(), unfinished)

    assert line == (
        "RUN: this run is in use by another process; wait for it to finish, or stop it first"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="processes end otherwise there")
def test_a_process_that_is_killed_holds_nothing(resume, unfinished):
    code = f"""
import os, pathlib, signal
from celstack.runs.directory import RunDirectory
with RunDirectory(pathlib.Path({str(unfinished)!r})).locked():
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9

    assert resume().code == 0


def test_a_checkpoint_of_another_recipe_is_refused_by_what_differs(resume, unfinished):
    recipe = json.loads(read_recipe_json(unfinished))
    recipe["training"]["batch_size"] = 7
    change_checkpoint(unfinished, recipe=json.dumps(recipe))

    assert complaint(resume(), unfinished) == (
        "RUN/checkpoint.pt: its recipe differs from the run's: "
        "training.batch_size was 7 and is 32"
    )


def test_a_recipe_that_was_changed_since_is_refused_by_what_differs(resume, unfinished):
    path = unfinished / "resolved.toml"
    text = path.read_text("utf-8").replace("seed = 0", "seed = 1", 1)
    path.write_text(text.replace("steps = 2", "steps = 3"), "utf-8")

    assert complaint(resume(), unfinished).endswith(" was 0 and is 1, and 1 more")


def test_a_checkpoint_of_another_version_is_refused(resume, unfinished):
    change_checkpoint(unfinished, version="0.0.9")

    assert "RUN/checkpoint.pt: was written by celstack 0.0.9, but this is " in complaint(
        resume(), unfinished
    )


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_checkpoint_that_is_cut_off_is_refused(resume, unfinished, share):
    path = unfinished / "checkpoint.pt"
    os.truncate(path, int(share * path.stat().st_size))
    log = (unfinished / "log.jsonl").read_bytes()

    assert complaint(resume(), unfinished).startswith("RUN/checkpoint.pt: is damaged: ")
    assert (unfinished / "log.jsonl").read_bytes() == log


def test_a_checkpoint_without_its_random_state_is_refused(resume, unfinished):
    change_checkpoint(unfinished, random=None)

    assert complaint(resume(), unfinished) == (
        "RUN/checkpoint.pt: cannot resume: missing or invalid: random"
    )
