"""The metrics file as it is written: by threads, forks and on disks that fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import runyard
import runyard.report as report
from runyard.report import metrics_file


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    path = tmp_path / "metrics.jsonl"
    monkeypatch.setenv("RUNYARD_METRICS_FILE", str(path))
    for name, value in (("dropped", 0), ("torn", False), ("thinned_at", float("-inf"))):
        monkeypatch.setattr(metrics_file._Account, name, value)
    return path


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_module_itself_can_be_called(file):
    """R15: each way that users write it."""
    runyard.report(step=1, loss=3.0)
    report(2, 10, loss=2.0)
    report.report(step=3, total=10, epoch=0.5, lr=1e-4, tokens_per_sec=1000)
    from runyard import report as same

    assert same is report is runyard.report
    assert [line["step"] for line in lines_of(file)] == [1, 2, 3]
    assert lines_of(file)[2]["lr"] == 1e-4


def test_a_line_says_when_and_who(file, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    before = time.time(), time.monotonic()
    report(step=1)
    [line] = lines_of(file)
    assert (line["v"], line["pid"], line["rank"]) == (1, os.getpid(), 3)
    assert before[0] - 1 <= line["t"] <= time.time() + 1
    assert before[1] - 1 <= line["m"] <= time.monotonic() + 1


@pytest.mark.parametrize("text", ["", "none", "-1", "99999999999", "٣"])
def test_an_absurd_rank_is_rank_0(file, monkeypatch, text):
    monkeypatch.setenv("RANK", text)
    report(step=1)
    assert lines_of(file)[0]["rank"] == 0


def test_outside_a_job_it_does_nothing(monkeypatch):
    monkeypatch.delenv("RUNYARD_METRICS_FILE", raising=False)
    before = report.dropped()
    report(step=1, loss=1.0)
    report.checkpoint("x", 1)
    assert report.dropped() == before


def test_a_checkpoint_is_told_with_its_whole_path(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report.checkpoint(Path("weights") / "last.pt", 40, loss=0.5)
    [line] = lines_of(file)
    assert line["kind"] == "checkpoint"
    assert line["path"] == str(tmp_path / "weights" / "last.pt")
    assert (line["step"], line["loss"]) == (40, 0.5)


@pytest.mark.parametrize("path", [None, 7, "x" * 5000, object()])
def test_an_absurd_checkpoint_path_is_dropped(file, path):
    report.checkpoint(path, 1)
    assert report.dropped() == 1
    assert not file.exists()


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize("target", ["missing/folder/m.jsonl", ".", "\0", "x" * 300])
def test_a_file_that_cannot_be_opened(tmp_path, monkeypatch, target):
    monkeypatch.setattr(metrics_file, "path", lambda: str(tmp_path / target))
    report(step=1)
    report(step=2)
    assert report.dropped() == 2


@pytest.mark.usefixtures("file")
def test_a_full_disk(monkeypatch):
    monkeypatch.setenv("RUNYARD_METRICS_FILE", "/dev/full")
    report(step=1)
    assert report.dropped() == 1


def test_a_read_only_place(person):
    """As somebody who is not root, because root may write anywhere."""
    folder = person.folder("shut")
    target = folder / "metrics.jsonl"
    target.touch(mode=0o444)
    folder.chmod(0o555)
    done = person.run(
        person.python,
        "-c",
        f"import os; os.environ['RUNYARD_METRICS_FILE'] = {str(target)!r}\n"
        "import runyard.report as r; r(step=1); print(r.dropped())",
    )
    assert done.stdout.strip() == "1", done.stderr


def test_a_pipe_without_reader_does_not_block(file):
    os.mkfifo(file)
    report(step=1)
    assert report.dropped() == 1


def test_after_a_torn_line_the_next_begins_its_own(file):
    """A disk that fills up inside a line: what follows must not be glued to the rest."""
    program = """
import os, resource, signal, sys
import runyard.report as report
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (150, resource.RLIM_INFINITY))
report(step=1, loss=0.5); report(step=2, loss=0.5)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
report(step=3, loss=0.5)
print(report.dropped())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"
    first, torn, third = file.read_text().splitlines()
    assert json.loads(first)["step"] == 1
    with pytest.raises(ValueError):  # noqa: PT011 (cut anywhere)
        json.loads(torn)
    assert json.loads(third)["step"] == 3


def test_threads_and_forks_write_whole_lines(file):
    program = """
import os, threading
import runyard.report as report
def many(worker):
    for step in range(200):
        report(step=step, worker=worker, **{f"metric_{n}": 0.123456789 for n in range(20)})
threads = [threading.Thread(target=many, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
children = []
for n in range(4, 7):
    pid = os.fork()
    if pid == 0:
        many(n); os._exit(report.dropped())
    children.append(pid)
for thread in threads: thread.join()
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
raise SystemExit(sum(codes) + report.dropped())
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)
    seen = lines_of(file)
    assert len(seen) == 7 * 200
    for worker in range(7):
        steps = [line["step"] for line in seen if line["worker"] == worker]
        assert steps == list(range(200))


def test_a_large_file_is_thinned_and_never_cut(file, monkeypatch):
    report(step=1)
    monkeypatch.setattr(metrics_file, "THINNED_ABOVE", 10)
    monkeypatch.setattr(metrics_file, "THINNED_EVERY_S", 3600.0)
    for step in range(2, 12):
        report(step=step)
    report.checkpoint("x", 12)
    assert [line["step"] for line in lines_of(file)] == [1, 2, 12]
    assert report.dropped() == 9
    monkeypatch.setattr(metrics_file, "CLOSED_ABOVE", 20)
    report.checkpoint("x", 13)
    assert len(lines_of(file)) == 3


def test_it_is_quick_enough_for_every_step(file):
    """Wide bound: a training that tells every step must not feel it."""
    began = time.process_time()
    for step in range(1000):
        report(step=step, total=1000, loss=0.5)
    assert time.process_time() - began < 5
    assert len(lines_of(file)) == 1000


def test_callable_from_many_threads_at_once(file):
    threads = [threading.Thread(target=report, kwargs={"step": step}) for step in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(line["step"] for line in lines_of(file)) == list(range(50))


def test_a_line_of_a_distributed_attempt_carries_its_token(file, monkeypatch):
    """R30: lines of an earlier attempt's ranks can be told apart; a metric of that name is one."""
    monkeypatch.setenv("RUNYARD_ATTEMPT_TOKEN", "0123456789abcdef")
    report(step=1, token=7)
    [line] = lines_of(file)
    assert (line["token"], line["values"]) == ("0123456789abcdef", {"token": 7})


def test_ranks_below_torchrun_have_files_of_their_own(file, monkeypatch):
    """R30: torchrun gives all of them the same path."""
    monkeypatch.setenv("RUNYARD_METRICS_PER_RANK", "1")
    for rank in ("0", "2"):
        monkeypatch.setenv("RANK", rank)
        report(step=1)
    other = file.with_name("metrics-rank-2.jsonl")
    assert [line["rank"] for line in (*lines_of(file), *lines_of(other))] == [0, 2]
