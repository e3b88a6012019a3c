"""What the yard gave, and what importing costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import runyard.report as report
from runyard.domain.recovery import batch_scale_mark


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ('{"lr": 0.1, "name": "a"}', {"lr": 0.1, "name": "a"}),
        ("", {}),
        ("not json", {}),
        ("[1]", {}),
    ],
)
def test_params(monkeypatch, text, params):
    monkeypatch.setenv("RUNYARD_PARAMS", text)
    assert report.params() == params


@pytest.mark.parametrize(
    ("text", "scale"),
    [("1", 1), ("0.5", 0.5), ("1/4", 0.25), ("", 1), ("0", 1), ("-2", 1), ("nan", 1), ("1/0", 1)],
)
def test_batch_scale(monkeypatch, text, scale):
    monkeypatch.setenv("RUNYARD_BATCH_SCALE", text)
    assert report.batch_scale() == scale


def test_asking_for_the_scale_leaves_one_mark(monkeypatch, tmp_path):
    """R20: only then is it worth halving again."""
    file = tmp_path / "metrics.jsonl"
    monkeypatch.setenv("RUNYARD_METRICS_FILE", str(file))
    program = "from runyard import report; report.batch_scale(); report.batch_scale()"
    subprocess.run([sys.executable, "-c", program], check=True)
    [line] = file.read_text().splitlines()
    assert batch_scale_mark.is_mark(line)
    assert not batch_scale_mark.is_mark('{"kind": "checkpoint", "path": "/batch_scale"}')
    assert not batch_scale_mark.is_mark('{"kind": "batch_scale"')


def test_resume_from(monkeypatch):
    monkeypatch.delenv("RUNYARD_RESUME_FROM", raising=False)
    assert report.resume_from() is None
    monkeypatch.setenv("RUNYARD_RESUME_FROM", "/checkpoints/40")
    assert report.resume_from() == "/checkpoints/40"


def test_outside_a_job_there_is_nothing(monkeypatch):
    for name in ("RUNYARD_PARAMS", "RUNYARD_BATCH_SCALE"):
        monkeypatch.delenv(name, raising=False)
    assert report.params() == {}
    assert report.batch_scale() == 1.0


def test_importing_loads_little(root_of_source):
    """R15: under 20 ms. The time depends on the machine, what is loaded does not."""
    program = (
        f"import sys; sys.path.insert(0, {str(root_of_source)!r}); before = set(sys.modules)\n"
        "import runyard.report; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    foreign = {name for name in done.stdout.split() if not name.startswith("runyard")}
    assert foreign.isdisjoint(
        {"json", "re", "enum", "typing", "functools", "threading", "signal", "hashlib", "logging"}
    )


@pytest.fixture
def root_of_source():
    from pathlib import Path

    return Path(report.__file__).parents[2]
