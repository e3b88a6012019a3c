"""Lines that only follow from another: of children, of workers, of whoever was being stopped."""

from __future__ import annotations

import pytest

from runyard.domain.failures import candidates, scan
from runyard.domain.failures.categories import Category
from runyard.domain.failures.classify import classify
from runyard.domain.failures.evidence import Evidence, RankLog, lines_of

CHILD = """Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/usr/lib/python3.11/multiprocessing/spawn.py", line 132, in _main
    self = reduction.pickle.load(from_parent)
"""
PARENT = """Traceback (most recent call last):
  File "/w/train.py", line 9, in <module>
    worker.start()
AttributeError: Can't pickle local object 'main.<locals>.<lambda>'
"""
WORKER = """Traceback (most recent call last):
  File "/w/train.py", line 9, in <module>
    for batch in loader:
RuntimeError: DataLoader worker (pid(s) 511, 518) exited unexpectedly"""
CANCELLED = "slurmstepd: error: *** STEP 7.0 ON gpu1 CANCELLED AT 2026-03-05T15:22:40 ***"


def named(text, exit_code=1):
    found = classify(Evidence(exit_code=exit_code, logs=(RankLog(tail=lines_of(text)),)))
    return found.category


def raised(line, frame="/w/train.py", function="main"):
    return f'Traceback (most recent call last):\n  File "{frame}", line 9, in {function}\n{line}'


@pytest.mark.parametrize("cut_off", ["EOFError: Ran out of input", "_pickle.UnpicklingError: pickle data was truncated"])  # fmt: skip
def test_a_child_whose_parent_failed_has_read_no_checkpoint(cut_off):
    """R18, R20"""
    assert named(PARENT + CHILD + cut_off) is Category.CODE
    assert named(CHILD + cut_off + "\n" + PARENT.rstrip()) is Category.CODE
    assert named(CHILD + cut_off) is Category.UNKNOWN
    assert named(raised(cut_off)) is Category.CKPT_CORRUPT


def test_what_a_child_does_not_find_is_its_own_error():
    """R18"""
    line = "AttributeError: Can't get attribute 'Net' on <module '__main__' (built-in)>"
    assert named(CHILD + line) is Category.CODE


def test_a_worker_that_is_gone_says_less_than_what_it_said_before():
    """R18"""
    bus = "ERROR: Unexpected bus error encountered in worker."
    assert named(f"{bus}\n{WORKER}") is Category.SHM
    assert named(WORKER) is Category.HOST_OOM


@pytest.mark.parametrize(
    "after",
    [
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 1201 got signal: 15",
        "RuntimeError: [/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.5]:41207",
    ],
)
def test_what_is_raised_after_somebodys_stop_follows_from_it(after):
    """R18, R20"""
    assert named(f"{CANCELLED}\n{raised(after)}", exit_code=143) is Category.EXTERNAL_STOP
    assert named(f"{CANCELLED}\n{raised('KeyError: 0')}") is Category.CODE


def test_a_checkpoint_is_missing_only_where_it_is_read():
    """R18, R20"""
    line = "FileNotFoundError: [Errno 2] No such file or directory: 'out/step-40/.metadata'"
    frame = "/env/torch/distributed/checkpoint/filesystem.py"
    assert named(raised(line, frame, "read_metadata")) is Category.CKPT_MISSING
    assert named(raised(line, frame, "write_metadata")) is Category.PATH


def test_a_fatal_line_that_points_elsewhere_is_kept_where_nothing_else_is_told():
    """R18"""
    said = "E0701 13:13:02.440019 4522 agent.cc:332] Polled an error from coordination service"
    fatal = "F0701 13:13:02.440107 4522 client.h:80] another task died; see the other task logs"
    assert named(f"{said}\n{fatal}", exit_code=134) is Category.COMM_NET


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("/w/run.sh: line 22: accelerate: command not found", Category.ENV),
        ("/w/run.sh: line 22: acelerate: command not found", Category.CONFIG),
        ("/bin/sh: 1: torchrun: not found", Category.ENV),
        ("/bin/sh: 1: my-torchrun: not found", Category.CONFIG),
    ],
)
def test_a_program_that_is_spelled_rightly_is_not_installed(line, category):
    """R18"""
    assert named(line, exit_code=127) is category


def test_words_of_any_language_are_found_among_ordinary_lines():
    """R18"""
    lines = ["\ud83d half a letter", "█████ 12%", "cat: x: 没有那个文件或目录", "x 123Killed"]
    found = candidates.found_in(scan.texts(RankLog(tail=lines_of("\n".join(lines)))))
    assert set(found.signatures) == {2, 3}
