"""A log as a whole: lines in all, what was dropped, and where a follower goes on."""

import pytest

from runyard.logs.log_file import LogFile
from runyard.logs.log_outline import Dropped, Outline, outline

MB = 1024 * 1024


def lines(first, count):
    return b"".join(b"line %07d of the log\n" % n for n in range(first, first + count))


def test_an_empty_log_and_one_that_is_not_there_yet(log, tmp_path):
    assert outline(log(b""), 0) == Outline(0, False, 0)
    assert outline(LogFile(str(tmp_path / "later.log")), 0) == Outline(0, False, 0)


@pytest.mark.parametrize(
    ("data", "total", "shown"),
    [
        (b"one\ntwo\n", 2, b""),
        (b"one\ntwo", 2, b"two"),
        (b"one", 1, b"one"),
        (b"one\r\ntwo\r\n", 2, b""),
        (b"one\nbar 1%\rbar 2%", 2, b"bar 2%"),
        (b"one\nbar 1%\rbar 2%\r", 2, b"bar 2%\r"),
        (b"\r\r", 1, b"\r\r"),
    ],
)
def test_a_follower_is_told_again_what_the_last_line_shows(log, data, total, shown):
    found = outline(log(data), len(data))
    assert (found.total, data[found.resume :], found.dropped) == (total, shown, ())
    assert found.unfinished == (not data.endswith(b"\n"))


def test_an_endless_bar_is_not_told_again_from_its_beginning(log):
    bar = b"".join(b"\r%7d of a lot" % n for n in range(400_000))
    found = outline(log(bar), len(bar))
    assert (found.total, bar[found.resume :]) == (1, b" 399999 of a lot")
    letters = b"x" * 3 * MB
    assert outline(log(letters), len(letters)) == Outline(1, True, 3 * MB)


def test_what_came_after_the_page_was_read_is_not_counted(log):
    data = lines(0, 10_000)
    size = len(lines(0, 100))
    assert outline(log(data), size) == Outline(100, False, size)


def test_dropped_lines_are_named_by_their_neighbours(log, punch):
    found = log(lines(0, 200_000))
    found.lines(199_999, 1)
    punch(found, MB, 2 * MB)
    whole = outline(found, found.size())
    (part,) = whole.dropped
    assert (part.start, part.end, whole.total) == (MB, 2 * MB, 200_000)
    assert (part.before, part.after) == (MB // 24, 2 * MB // 24)
    page = found.lines(part.before, 2)
    assert page.lines[0].startswith(f"line {part.before:07d}"[:10])
    assert found.lines(part.after + 1, 1).lines == [f"line {part.after + 1:07d} of the log"]


def test_a_line_cut_by_a_gap_has_its_number_on_both_sides(log, punch):
    found = log(b"first\n" + b"y" * 3 * MB + b"\nlast\n")
    punch(found, MB, 2 * MB)
    whole = outline(found, found.size())
    assert whole.dropped == (Dropped(MB, 2 * MB, 1, 1),)
    assert whole.total == 3


def test_a_log_whose_beginning_is_gone(log, punch):
    found = log(lines(0, 100_000))
    found.lines(99_999, 1)
    punch(found, 0, MB)
    (part,) = outline(found, found.size()).dropped
    assert (part.before, part.after) == (-1, MB // 24)
