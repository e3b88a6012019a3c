"""A search by ask and tell whose trials are jobs on the cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ray_cluster import marked
from yards import until

CONTROLLER = Path(__file__).parents[3] / "examples" / "search_optuna.py"
TRIALS = 4
# Large rates diverge at once and would never end by themselves; small ones wait for a sign.
TRAINING = """
import json, os, sys, time
rate, go = float(sys.argv[1]), sys.argv[2]
file = open(os.environ["RUNYARD_METRICS_FILE"], "a")
def tell(step, loss):
    file.write(json.dumps({"step": step, "loss": loss}) + "\\n"); file.flush()
tell(1, 1000.0 if rate > 0.01 else rate)
while rate > 0.01 or not os.path.exists(go):
    time.sleep(0.05)
tell(2, rate)
"""


@pytest.fixture
def begin(ray_yard, tmp_path):
    env = ray_yard.env | {"RUNYARD_URL": ray_yard.url, "RUNYARD_API_KEY": ray_yard.key}
    shape = ["--cpus", "0.01", "--memory", "0.01", "--trials", str(TRIALS), "--seed", "5"]
    storage = ["--storage", f"sqlite:///{tmp_path}/search.db", "--study", "search"]
    training = [sys.executable, "-c", TRAINING, "{lr}", str(tmp_path / "go")]
    begun: list[subprocess.Popen[str]] = []

    def begin():
        argv = [sys.executable, str(CONTROLLER), *shape, *storage, "--", *training]
        begun.append(
            subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
        )
        return begun[-1]

    yield begin
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_optuna_asktell_prunes_child_job(ray_yard, begin, tmp_path):
    """R25, R50: a trial that goes wrong is cancelled on its node and nothing of it is left; the
    controller is killed with -9 in the middle, and the next one goes on with the same trials and
    the same jobs."""
    import optuna

    first = begin()
    running = until(lambda: _rows(ray_yard, "running"), 60)[0]
    until(lambda: ray_yard.ask(f"/jobs/{running['job_id']}/metrics")["series"], 60)
    first.kill()
    first.wait()
    (tmp_path / "go").touch()
    second = begin()
    said, _ = second.communicate(timeout=200)
    assert second.returncode == 0, said

    study = optuna.load_study(study_name="search", storage=f"sqlite:///{tmp_path}/search.db")
    trials = study.get_trials()
    states = {trial.number: trial.state.name for trial in trials}
    assert set(states) == set(range(TRIALS))
    assert set(states.values()) == {"COMPLETE", "PRUNED"}, "the seed gives both kinds"
    jobs = {int(row["labels"]["trial"]): row for row in _rows(ray_yard)}
    assert len(_rows(ray_yard)) == len(jobs) == TRIALS, "a trial is one job, whoever submits it"
    ends = {"COMPLETE": "completed", "PRUNED": "cancelled"}
    for number, state in states.items():
        assert jobs[number]["status"] == ends[state]
        assert not marked(f"{jobs[number]['job_id']}.1")
    best = min(trial.params["lr"] for trial in trials if trial.state.name == "COMPLETE")
    assert study.best_value == pytest.approx(best, rel=1e-4)


def _rows(yard, *states):
    found = yard.ask("/jobs?label=study=search&limit=50")
    return [row for row in found if not states or row["status"] in states]
