"""New lines of growing files, whatever is in them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from runyard.logs.log_tail import LONGEST_LINE, LogTail, lines_between


def _texts(tail) -> list[str]:
    return [line.text for line in tail.lines]


@pytest.fixture
def log(tmp_path) -> Path:
    return tmp_path / "out.log"


def _append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


def test_lines_come_once_and_unfinished_ones_wait(log):
    tail = LogTail(str(log))
    assert _texts(tail.read(1000)) == []
    _append(log, b"one\ntwo\nthr")
    assert _texts(tail.read(1000)) == ["one", "two"]
    assert tail.offset == 8
    assert _texts(tail.read(1000)) == []
    _append(log, b"ee\n")
    assert _texts(tail.read(1000)) == ["three"]
    assert tail.offset == 14


def test_bars_are_lines_that_end_at_carriage_returns(log):
    _append(log, b"begin\n\r 10%\r 20%\r 30%")
    tail = LogTail(str(log))
    assert _texts(tail.read(1000)) == ["begin", " 10%", " 20%"]
    assert tail.bar() == " 30%"
    assert tail.take_rest() == " 30%"
    assert tail.rest() == ""
    assert tail.offset == log.stat().st_size


def test_a_beginning_of_a_line_is_no_bar(log):
    _append(log, b"begin\nhalf a li")
    tail = LogTail(str(log))
    tail.read(1000)
    assert tail.rest() == "half a li"
    assert tail.bar() == ""


def test_much_is_read_in_parts(log):
    _append(log, b"".join(b"line %d\n" % n for n in range(1000)))
    tail = LogTail(str(log))
    seen, reads = [], 0
    while True:
        found = tail.read(500)
        seen += _texts(found)
        reads += 1
        if not found.more:
            break
    assert seen == [f"line {n}" for n in range(1000)]
    assert reads > 10


def test_it_goes_on_where_another_stopped(log):
    _append(log, b"one\ntwo\nthree\n")
    first = LogTail(str(log))
    first.read(6)
    second = LogTail(str(log), first.offset)
    assert _texts(second.read(1000)) == ["two", "three"]


def test_a_line_of_a_hundred_megabytes_costs_little(log):
    """Bad input: neither memory nor time, and what follows is read."""
    with open(log, "wb") as file:
        file.write(b"before\n")
        for _ in range(100):
            file.write(b"x" * 2**20)
        file.write(b"\nafter\n")
    tail = LogTail(str(log))
    seen, more, largest = [], True, 0
    begun = time.process_time()
    while more:
        found = tail.read(256 * 1024)
        seen += _texts(found)
        largest = max(largest, len(tail.rest()))
        more = found.more
    assert seen == ["before", "after"]
    assert tail.too_long == 1
    assert largest <= LONGEST_LINE
    assert time.process_time() - begun < 30


def test_binary_data_is_harmless(log):
    data = os.urandom(300_000) + b"\nend\n"
    _append(log, data)
    tail = LogTail(str(log))
    seen, more = [], True
    while more:
        found = tail.read(64 * 1024)
        seen += _texts(found)
        more = found.more
    assert seen[-1] == "end"
    assert tail.offset == len(data)


def test_gaps_are_stepped_over(log):
    with open(log, "wb") as file:
        file.write(b"first\n")
        file.seek(8 * 2**20)
        file.write(b"of a line that was cut\nlast\n")
    tail = LogTail(str(log))
    seen, reads = [], 0
    while reads < 50:
        found = tail.read(256 * 1024)
        reads += 1
        seen += [text.strip("\0") for text in _texts(found)]
        if not found.more and reads > 2:
            break
    assert seen[0] == "first"
    assert seen[-1] == "last"


def test_what_is_no_file_is_read_as_nothing(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder", "none"):
        assert _texts(LogTail(str(tmp_path / name)).read(1000)) == []
    assert _texts(LogTail("/dev/zero").read(1000)) == []


def test_a_file_that_is_written_anew_is_read_from_its_beginning(log):
    _append(log, b"a long first line\n")
    tail = LogTail(str(log))
    tail.read(1000)
    log.write_bytes(b"new\n")
    assert _texts(tail.read(1000)) == ["new"]


def test_skipping_leaves_out_the_line_it_falls_into(log):
    _append(log, b"one\ntwo\nthree\nfour\n")
    tail = LogTail(str(log))
    tail.skip_to(6)
    assert _texts(tail.read(1000)) == ["three", "four"]


def test_whole_lines_between_two_places(log):
    _append(log, b"one\ntwo\nthree\nfour\n")
    assert lines_between(str(log), 0, 8) == ["one", "two"]
    assert lines_between(str(log), 5, 14) == ["three"]
    assert lines_between(str(log.parent / "none"), 0, 10) == []
