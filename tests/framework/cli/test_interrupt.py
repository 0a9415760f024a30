import signal
import subprocess
import sys
import time

import pytest
import torch

CODE = "from celstack.cli import run_recipe; run_recipe()"


def wait_for(condition, process, seconds=120):
    """Wait until something is so, unless the process ends before."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT can be sent there")
def test_ctrl_c_saves_what_was_learned_and_says_how_to_go_on(small, tmp_path):
    out = tmp_path / "runs"
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            CODE,
            small,
            "--out",
            str(out),
            "--set",
            "stages[0].steps=9999999",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        logs = lambda: (log.read_text() for log in out.glob("my/*/log.jsonl"))  # noqa: E731
        wait_for(lambda: any('"loss"' in text for text in logs()), process)
        process.send_signal(signal.SIGINT)
        said, complaint = process.communicate(timeout=60)
    finally:
        process.kill()

    (checkpoint,) = out.glob("my/*/checkpoint.pt")
    assert process.returncode == 130
    assert said == ""
    assert complaint == (
        "celstack: Interrupted; progress saved. Resume with: "
        f"run-recipe --resume {checkpoint.parent}\n"
    )
    assert torch.load(checkpoint, weights_only=True)["step"] >= 1
