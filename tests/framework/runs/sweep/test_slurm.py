"""A sweep through submitit: jobs of plain command lines, tried out on this machine."""

import json
import sys

import pytest

from celstack.errors import CelstackError
from celstack.runs.sweep import slurm as cluster
from celstack.runs.sweep.slurm import make_executor, read_settings, run_on_cluster

pytest.importorskip("submitit")
windows = pytest.mark.skipif(sys.platform == "win32", reason="submitit needs signals")

SBATCH = """\
#!/bin/sh
cp "$1" {kept}
echo "Submitted batch job 7"
"""


def test_settings_are_values_of_toml():
    settings = read_settings(["timeout_min=90", "slurm_partition=gpu", "mem_gb = 4.5"])

    assert settings == {"timeout_min": 90, "slurm_partition": "gpu", "mem_gb": 4.5}


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        (["timeout_min"], "--launcher-set timeout_min: expected name=value"),
        (["a b=1"], "--launcher-set a b=1: expected name=value"),
        (["timeout_min=[1"], r"--launcher-set timeout_min=\[1: what follows '='"),
        (["slurm_partition=gpu"], "--launcher-set: the time limit of jobs is required"),
    ],
)
def test_settings_that_make_no_sense_are_refused(texts, complaint):
    with pytest.raises(CelstackError, match=f"^{complaint}"):
        read_settings(texts)


@pytest.mark.parametrize("settings", [{"slurm_partitoin": "gpu"}, {"timeout_min": "long"}])
def test_what_submitit_does_not_know_is_a_mistake(tmp_path, settings):
    with pytest.raises(CelstackError, match=r"^--launcher local: ") as refused:
        make_executor("local", tmp_path / "jobs", settings, None)

    assert "\n" not in str(refused.value)


def test_where_submitit_is_missing_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)

    with pytest.raises(CelstackError, match=r"pip install 'celstack\[cluster\]'"):
        make_executor("slurm", tmp_path, {}, None)


def test_where_there_is_no_cluster_that_is_said_and_nothing_written(command, small, tmp_path):
    out = tmp_path / "swept"
    words = ["--grid", "seed=0", "--launcher", "slurm", "--launcher-set", "timeout_min=5"]

    answer = command("celstack", "sweep", small, "--out", str(out), *words)

    assert answer.code == 2
    assert answer.complaint.startswith("celstack: --launcher slurm: ")
    assert answer.complaint.count("\n") == 1
    assert not out.exists()


@windows
def test_a_sweep_goes_through_a_launcher_and_a_failure_costs_only_itself(
    command, small, tmp_path
):
    out = tmp_path / "swept"
    grid = ["--grid", "training.prototype_rate=1e-3,1e38", "--set", "stages[0].steps=9"]
    there = ["--launcher", "local", "--launcher-set", "timeout_min=5", "--device", "cpu"]

    answer = command("celstack", "sweep", small, "--out", str(out), *grid, *there)

    found = json.loads((out / "sweep.json").read_text("utf-8"))
    assert answer.code == 1, answer.complaint
    assert len(found["runs"]) == 1
    assert found["failed"][0]["reason"].startswith("step ")
    assert "run 1 of 2: training.prototype_rate = 0.001: submitted as job" in (answer.complaint)
    # What submitit pickles is in a folder of its own, and not among the runs.
    assert list(out.rglob("*.pkl"))
    assert not list((out / "my").rglob("*.pkl"))


class Told:
    """A progress that says nothing."""

    def run_started(self, *_):
        """Say nothing."""

    def refresh(self):
        """Press Ctrl-C."""
        raise KeyboardInterrupt


@windows
def test_partition_and_time_and_number_of_jobs_are_passed_on(tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    kept, cancelled = tmp_path / "kept.sh", tmp_path / "cancelled"
    scripts = {
        "sbatch": SBATCH.format(kept=kept),
        "srun": "#!/bin/sh\n",
        "sacct": "#!/bin/sh\necho 'JobID|State'\n",
        "scancel": f"#!/bin/sh\necho $@ >>{cancelled}\n",
    }
    for name, text in scripts.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    monkeypatch.setitem(cluster.POLL_SECONDS, "slurm", 0.01)
    settings = read_settings(["timeout_min=90", "slurm_partition=gpu", "cpus_per_task=4"])
    executor = make_executor("slurm", tmp_path / "jobs", settings, 2)
    folders = [tmp_path / name for name in "abc"]

    with pytest.raises(KeyboardInterrupt):
        run_on_cluster([lambda f=f: f for f in folders], Told(), executor, "cpu")

    text = kept.read_text()
    for option in ("--partition=gpu", "--time=90", "--cpus-per-task=4", "--array=0-2%2"):
        assert f"#SBATCH {option}\n" in text
    # Ctrl-C takes back what was submitted.
    assert cancelled.read_text().split() == ["7_0", "7_1", "7_2"]
