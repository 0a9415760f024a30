"""`celstack table` as a newcomer meets it."""

import sys

import pytest


def test_it_prints_markdown_where_nobody_looks(command, fake_run):
    answer = command("celstack", "table", str(fake_run(published={"them": {"ari": 99.6}})))

    assert answer.code == 0
    assert answer.said.startswith("## shapes\n\n|  | runs | images | ari (%) |\n")
    assert "| them | published |  | 99.6 |" in answer.said


def test_it_draws_a_table_on_a_terminal(command, fake_run, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    said = command("celstack", "table", str(fake_run(name="[red]odd"))).said

    assert "[red]odd" in said
    assert "│" in said
    assert "| --- |" not in said


def test_it_writes_markdown_to_a_file(command, fake_run, tmp_path):
    out = tmp_path / "table.md"

    answer = command("celstack", "table", str(fake_run()), "--out", str(out))

    assert answer.said == f"Table: {out}\n"
    assert out.read_text(encoding="utf-8").startswith("## shapes\n")


def test_it_shows_each_seed_if_asked_to(command, fake_run):
    runs = [str(fake_run(seed=seed)) for seed in (0, 1)]

    assert "mine, seed 1" not in command("celstack", "table", *runs).said
    assert "mine, seed 1" in command("celstack", "table", *runs, "--each").said


def test_a_run_that_is_named_twice_counts_once(command, fake_run):
    run = fake_run()

    said = command("celstack", "table", str(run), f"{run}/", str(run / ".." / run.name)).said

    assert "| mine | 1 |" in said


def test_what_sums_seeds_up_is_no_run_and_no_mistake(command, fake_run):
    run = fake_run()
    for ending in ("json", "md"):
        (run.parent / f"2026-seeds.{ending}").write_text("")

    answer = command("celstack", "table", *map(str, run.parent.iterdir()))

    assert answer.code == 0
    assert "| mine | 1 |" in answer.said


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        ("resolved.toml", "not a run folder (no resolved.toml)"),
        ("metrics.json", "not finished (no metrics.json"),
    ],
)
def test_what_is_no_finished_run_is_refused_in_one_line(command, fake_run, missing, text):
    run = fake_run()
    (run / missing).unlink()

    answer = command("celstack", "table", str(run))

    assert (answer.code, answer.said) == (2, "")
    assert answer.complaint.startswith(f"celstack: {run}: {text}")
    assert answer.complaint.count("\n") == 1


def test_no_run_at_all_is_refused(command, tmp_path):
    answer = command("celstack", "table", str(tmp_path / "a-seeds.md"))

    assert (answer.code, answer.complaint) == (
        2,
        "celstack: none of the paths is a run folder\n",
    )


def test_a_place_where_nothing_can_be_written_is_refused(command, fake_run, tmp_path):
    out = tmp_path / "missing" / "table.md"

    answer = command("celstack", "table", str(fake_run()), "--out", str(out))

    assert (answer.code, answer.complaint) == (
        2,
        f"celstack: --out {out}: No such file or directory\n",
    )
