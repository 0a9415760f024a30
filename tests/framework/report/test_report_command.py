"""`celstack report` and `celstack compare` as a newcomer meets them."""

import json

import pytest
import torch
from PIL import Image

HOSTILE = "<script>alert('1')</script>\"🦆"


def complaint(answer):
    assert answer.code == 2
    (line,) = answer.complaint.splitlines()
    return line.removeprefix("celstack: ")


def test_the_page_is_written_into_the_run_and_nothing_else(command, copied_run):
    files = [path for path in copied_run.rglob("*") if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in files}

    answer = command("celstack", "report", str(copied_run))

    page = copied_run / "report.html"
    assert answer.code == 0, answer.complaint
    assert answer.said == f"Report: {page} (open it in a browser)\n"
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    after = {path for path in copied_run.rglob("*") if path.is_file()}
    assert after - before.keys() == {page}
    assert all(
        path.stat().st_mtime_ns == then for path, then in before.items() if path.is_file()
    )


def test_the_page_is_the_same_when_it_is_written_again(command, copied_run):
    command("celstack", "report", str(copied_run))
    first = (copied_run / "report.html").read_text(encoding="utf-8")

    command("celstack", "report", str(copied_run))

    assert (copied_run / "report.html").read_text(encoding="utf-8") == first


def test_what_is_no_run_is_refused(command, tmp_path):
    said = complaint(command("celstack", "report", str(tmp_path)))

    assert said == f"{tmp_path}: not a run folder (no resolved.toml)"


def test_a_damaged_example_is_told_on_the_page(command, copied_run, parsed):
    broken = next((copied_run / "examples").iterdir())
    broken.write_bytes(b"nothing")

    answer = command("celstack", "report", str(copied_run))

    assert answer.code == 0
    said = f"No examples: {broken}: cannot be read"
    assert answer.said.startswith(said)
    text = parsed((copied_run / "report.html").read_text(encoding="utf-8")).text
    assert said in text


def test_a_damaged_census_is_one_line(command, copied_run):
    (copied_run / "census.json").write_text("{")

    said = complaint(command("celstack", "report", str(copied_run)))

    assert said.startswith(f"{copied_run / 'census.json'}: is damaged")
    assert not (copied_run / "report.html").exists()


@pytest.fixture
def two_runs(fake_run):
    """Two runs of other numbers of sprites, each with a picture of one."""
    folders = []
    for count in (3, 4):
        folder = fake_run(
            seed=count,
            name=f"mine{count}",
            metrics={"ari": 0.25 * count - 0.5},
            sprites={"use": "pixels", "count": count},
            published={"the paper": {"ari": 99.8}},
        )
        (folder / "sprites").mkdir()
        Image.new("RGBA", (4, 4), "red").save(folder / "sprites" / "00.png")
        folders.append(folder)
    return folders


def compare(command, folders, out):
    answer = command("celstack", "compare", *map(str, folders), "--out", str(out))
    assert answer.code == 0, answer.complaint
    count = f"{len(folders)} runs" if len(folders) > 1 else "1 run"
    assert answer.said == f"Comparison of {count}: {out} (open it in a browser)\n"
    return out.read_text(encoding="utf-8")


def test_runs_are_set_side_by_side(command, two_runs, tmp_path, parsed):
    page = parsed(compare(command, two_runs, tmp_path / "both.html"))

    for fact in ("mine3, seed 3", "mine4, seed 4", "25.0", "50.0", "the paper", "99.8"):
        assert fact in page.text
    assert page.tags.count("img") == 2
    assert page.tags.count("polyline") == 2
    assert all(value.startswith(("data:image/", "#")) for value in page.addresses)


def test_only_what_differs_in_the_recipes_is_told(command, two_runs, tmp_path, parsed):
    text = parsed(compare(command, two_runs, tmp_path / "both.html")).text

    assert "sprites.count 3 4" in text
    assert "sprites.use" not in text


def test_runs_of_one_name_and_seed_are_told_apart(command, fake_run, tmp_path, parsed):
    folders = [fake_run(), fake_run()]

    text = parsed(compare(command, folders, tmp_path / "both.html")).text

    assert all(f"mine, seed 0, {folder.name}" in text for folder in folders)
    assert "None except the seed." in text


def test_hostile_names_in_a_comparison_are_text(command, fake_run, tmp_path, parsed):
    folders = [
        fake_run(name="<b>bold", description=HOSTILE, published={HOSTILE: {"ari": 1.0}}),
        fake_run(name="<b>bold", selector={"use": HOSTILE}),
    ]

    page = parsed(compare(command, folders, tmp_path / "both.html"))

    assert HOSTILE in page.text
    assert "<b>bold, seed 0" in page.text
    assert page.tags.count("script") == 1
    assert "b" not in page.tags
    assert page.handlers == []


def test_comparing_does_not_need_the_models(command, copied_run, tmp_path, monkeypatch, parsed):
    (copied_run / "checkpoint.pt").unlink()
    monkeypatch.setattr(torch, "load", None)

    page = parsed(compare(command, [copied_run], tmp_path / "one.html"))

    assert page.tags.count("img") == 2


@pytest.mark.parametrize("spoil", ["unfinished", "sprite", "out"])
def test_a_mistake_is_one_line_and_nothing_is_written(command, two_runs, tmp_path, spoil):
    first, out = two_runs[0], tmp_path / "both.html"
    if spoil == "unfinished":
        (first / "metrics.json").unlink()
        expected = f"{first}: not finished"
    elif spoil == "sprite":
        (first / "sprites" / "00.png").write_bytes(b"no")
        expected = f"{first / 'sprites' / '00.png'}: cannot be read"
    else:
        out = tmp_path / "gone" / "both.html"
        expected = f"--out {out}: No such file or directory"

    answer = command("celstack", "compare", *map(str, two_runs), "--out", str(out))

    assert complaint(answer).startswith(expected)
    assert not out.exists()


def test_summaries_that_lie_beside_runs_are_passed_over(command, two_runs, tmp_path):
    summary = two_runs[0].parent / "x-seeds.json"
    summary.write_text(json.dumps({}))

    answer = command(
        "celstack", "compare", str(two_runs[0]), str(summary), "--out", str(tmp_path / "a.html")
    )

    assert answer.said.startswith("Comparison of 1 run: ")


LONE = "\\ud800"
"""Half a character, as JSON spells it: text in Python, and in no file."""


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("metrics.json", '"mse"', f'"mse{LONE}"'),
        ("log.jsonl", '"begins": "', f'"begins": "{LONE}'),
        ("census.json", '"names": [', f'"names": ["{LONE}", '),
        ("environment.json", '"python": "', f'"python": "{LONE}'),
    ],
)
def test_half_a_character_in_the_run_of_a_stranger_is_shown_or_refused_in_a_line(
    command, copied_run, tmp_path, name, before, after
):
    path = copied_run / name
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    page = tmp_path / "compared.html"

    answers = [
        command("celstack", "report", str(copied_run)),
        command("celstack", "compare", str(copied_run), "--out", str(page)),
        command("celstack", "table", str(copied_run)),
    ]

    for answer in answers:
        assert answer.code == 0 or complaint(answer)
    if name == "metrics.json":
        assert r"mse\ud800" in answers[2].said
        assert r"mse\ud800" in page.read_text("utf-8")
        assert r"mse\ud800" in (copied_run / "report.html").read_text("utf-8")
