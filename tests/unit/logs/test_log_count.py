"""The supervisor counts lines before it drops them, and readers use its counts."""

import os

from runyard.logs import log_index
from runyard.logs.log_file import LogFile
from runyard.supervisor import log_count

MB = 1024 * 1024


def numbered(first, count):
    return b"".join(b"line %07d of the log\n" % n for n in range(first, first + count))


def count(log, end):
    handle = os.open(log.path, os.O_RDONLY)
    try:
        log_count.count_before_drop(handle, log.path, end)
    finally:
        os.close(handle)


def test_both_sides_mean_the_same_file():
    assert log_count.BLOCK == log_index.BLOCK


def test_lines_keep_their_numbers_though_nobody_read_before_the_drop(log, punch):
    """log_1gb_bounded_by_holes, in small: twice dropped, never read before."""
    found = log(numbered(0, 200_000))
    count(found, 2 * MB)
    punch(found, MB, 2 * MB)
    with open(found.path, "ab") as file:
        file.write(numbered(200_000, 100_000))
    count(found, 4 * MB + 4096)
    punch(found, MB, 4 * MB + 4096)
    page = LogFile(found.path).lines(299_990, 2)
    assert page.lines == ["line 0299990 of the log", "line 0299991 of the log"]
    assert (page.first, page.following) == (299_990, 299_992)
    gap = LogFile(found.path).lines(100_000, 1).gaps[0][1]
    assert (gap.start, gap.end) == (MB, 4 * MB + 4096)
    lines = (4 * MB + 4096) // 24 - MB // 24
    assert abs(gap.lines - lines) <= 1


def test_a_reader_that_counted_before_uses_the_newer_counts(log, punch):
    found = log(numbered(0, 100_000))
    assert found.lines(99_999, 1).lines == ["line 0099999 of the log"]
    with open(found.path, "ab") as file:
        file.write(numbered(100_000, 200_000))
    count(found, 6 * MB)
    punch(found, MB, 6 * MB)
    assert found.lines(290_000, 1).lines == ["line 0290000 of the log"]


def test_counting_again_changes_nothing(log):
    found = log(numbered(0, 100_000))
    count(found, MB)
    with open(found.path + ".lines", "rb") as file:
        before = file.read()
    count(found, MB)
    count(found, 1000)
    with open(found.path + ".lines", "rb") as file:
        assert file.read() == before
    assert len(before) == 8 * (MB // log_count.BLOCK + 1)
