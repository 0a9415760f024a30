import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from celstack.cli.output import print_error, print_line, printed_warnings

LOG = logging.getLogger("celstack")


def test_warnings_of_library_code_are_printed_with_their_prefix(capsys):
    with printed_warnings():
        LOG.warning("%d images are %s", 3, "broken")

    assert capsys.readouterr().err == "celstack: warning: 3 images are broken\n"


def test_less_than_a_warning_is_not_printed(capsys):
    with printed_warnings():
        LOG.info("nothing to see")

    assert capsys.readouterr().err == ""


def test_the_handler_is_gone_afterwards_even_after_an_error():
    before = list(LOG.handlers)

    with pytest.raises(ValueError, match="no"), printed_warnings():
        raise ValueError("no")

    assert LOG.handlers == before


def test_only_one_process_of_a_machine_prints_them(monkeypatch, capsys):
    monkeypatch.setenv("LOCAL_RANK", "1")

    with printed_warnings():
        LOG.warning("once is enough")

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["\x1b[31mred", "bell\a"])
def test_what_a_terminal_would_obey_is_escaped(capsys, text):
    print_error(text)
    with printed_warnings():
        LOG.warning(text)

    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\a" not in said
    assert len(said.splitlines()) == 2


def test_what_no_encoding_knows_is_escaped(capsys):
    print_line("mse\ud800")

    assert capsys.readouterr().out == "mse\\ud800\n"


FULL = Path("/dev/full")


def on_full_disk(*arguments, program="celstack", stderr=subprocess.PIPE, **environment):
    """Run a command whose standard output is a file on a full disk."""
    code = f"from celstack.cli import {program}; {program}()"
    with FULL.open("w") as full:
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            stdout=full,
            stderr=full if stderr is None else stderr,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        )


full_disk = pytest.mark.skipif(not FULL.exists(), reason="no such device here")


@full_disk
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["recipes"], ["--version"]])
def test_a_full_disk_is_told_in_a_line(arguments, unbuffered):
    done = on_full_disk(*arguments, PYTHONUNBUFFERED=unbuffered)

    reason = "No space left on device"
    assert done.stderr == f"celstack: standard output: cannot write there: {reason}\n"
    assert done.returncode == 2


@full_disk
def test_of_two_mistakes_the_first_is_told():
    done = on_full_disk("check", "nothing.toml")

    assert done.returncode == 2
    assert done.stderr.startswith("celstack: nothing.toml: no such recipe")
    assert len(done.stderr.splitlines()) == 1


@full_disk
def test_the_code_is_right_even_if_nothing_can_be_said():
    assert on_full_disk("check", "nothing.toml", stderr=None).returncode == 2


@full_disk
def test_runs_whose_lines_are_lost_are_not_lost(small, tmp_path):
    options = ["--out", str(tmp_path), "--seeds", "2", "--device", "cpu"]

    done = on_full_disk(small, *options, program="run_recipe", PYTHONUNBUFFERED="1")

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("celstack: standard output: cannot write")
    assert len(list(tmp_path.glob("*/*/metrics.json"))) == 2
