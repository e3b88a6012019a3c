"""Logs by line and by byte: last lines, ranges, gaps, growth."""

import os
import time

import pytest

from runyard.logs.log_file import LogFile, LogFiles
from runyard.logs.log_spans import Gap

MB = 1024 * 1024


def numbered(count, width=60):
    return b"".join(b"line %d %s\n" % (n, b"." * (width - 12)) for n in range(count))


def number_of(line):
    return int(line.split()[1])


def test_tail_gives_the_last_lines(log):
    """R36: logs?tail=100."""
    page = log(b"a\nb\nc\n").tail(2)
    assert page.lines == ["b", "c"]
    assert page.size == 6
    assert page.complete


def test_the_last_line_needs_no_newline(log):
    found = log(b"a\nlast without newline")
    assert found.tail(1).lines == ["last without newline"]
    assert found.lines(1, 5).lines == ["last without newline"]


@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n", b"x", b"x\n\ny\n", b"\nx"])
def test_tail_and_range_agree_on_small_logs(log, data):
    found = log(data)
    expected = data.decode().split("\n")
    if expected[-1] == "":
        expected.pop()
    assert found.tail(10).lines == expected
    assert found.lines(0, 10).lines == expected


def test_tail_of_nothing_and_of_a_file_that_is_not_there(tmp_path, log):
    missing = LogFile(str(tmp_path / "missing"))
    assert missing.tail(5).lines == []
    assert missing.lines(0, 5).lines == []
    assert missing.size() == 0
    assert list(missing.raw()) == []
    assert log(b"a\nb\n").tail(0).lines == []


def test_range_counts_from_zero_and_says_where_to_go_on(log):
    found = log(numbered(5000))
    page = found.lines(4321, 3)
    assert [number_of(line) for line in page.lines] == [4321, 4322, 4323]
    assert (page.first, page.following) == (4321, 4324)
    past = found.lines(9999, 3)
    assert past.lines == []
    assert past.following == 9999


@pytest.mark.parametrize("first", [0, 1, 999, 1000, 1092, 1093, 19998, 19999])
def test_every_line_is_found_whatever_block_it_is_in(log, first):
    found = log(numbered(20_000))
    assert [number_of(line) for line in found.lines(first, 1).lines] == [first]


def test_range_goes_on_in_a_growing_file(log):
    found = log(numbered(3000))
    assert found.lines(2999, 10).following == 3000
    with open(found.path, "ab") as file:
        file.write(numbered(5000)[len(numbered(3000)) :])
    assert [number_of(line) for line in found.lines(2999, 3).lines] == [2999, 3000, 3001]
    assert [number_of(line) for line in found.lines(4998, 9).lines] == [4998, 4999]


def test_a_binary_log_is_served(log):
    data = bytes(range(256)) * 4000
    found = log(data)
    assert len(found.tail(3).lines) == 3
    assert b"".join(found.raw()) == data


def test_carriage_returns_are_folded(log):
    bar = b"".join(b"\rbar %3d%%" % n for n in range(100))
    found = log(b"before\n" + bar + b"\nafter\n")
    assert found.tail(3).lines == ["before", "bar  99%", "after"]
    assert found.lines(0, 9).lines == ["before", "bar  99%", "after"]


def test_a_bar_of_many_megabytes_shows_its_last_state(log):
    """A whole epoch of a progress bar is one line of the file."""
    bar = b"\r".join(b"step %d" % n for n in range(400_000))
    found = log(b"start\n" + bar + b"\r\nend\n")
    assert found.tail(3).lines == ["start", "step 399999", "end"]
    assert found.lines(1, 1).lines == ["step 399999"]


def test_a_line_without_end_is_cut_not_read(log):
    found = log(b"y" * (100 * MB))
    (line,) = found.tail(1).lines
    assert line.startswith("yyy")
    assert line.endswith("more bytes in this line]")
    assert len(line) < 20_000


def test_one_answer_holds_a_bounded_amount_of_text(log):
    found = log((b"z" * 16_000 + b"\n") * 2000)
    last = found.tail(2000)
    assert not last.complete
    assert len(last.lines) < 600
    part = found.lines(0, 2000)
    assert not part.complete
    assert part.following == len(part.lines)


def test_a_million_lines(log):
    """Tail reads the end only; lines are counted once and then found at once. Loose limits."""
    found = log(numbered(1_000_000, 40))
    began = time.process_time()
    assert number_of(found.tail(100).lines[-1]) == 999_999
    tail_s = time.process_time() - began
    began = time.process_time()
    assert number_of(found.lines(500_000, 10).lines[0]) == 500_000
    first_s = time.process_time() - began
    began = time.process_time()
    assert number_of(found.lines(750_000, 10).lines[0]) == 750_000
    later_s = time.process_time() - began
    assert tail_s < 0.5
    assert first_s < 5
    assert later_s < 0.5


def test_raw_gives_a_range_of_bytes(log):
    found = log(b"0123456789")
    assert b"".join(found.raw(3, 4)) == b"3456"
    assert b"".join(found.raw(8)) == b"89"
    assert b"".join(found.raw(50, 5)) == b""


def test_lines_keep_their_numbers_over_a_gap(log, punch):
    """log_offset_reader_over_hole: counted before the middle was dropped."""
    data = numbered(100_000)
    found = log(data)
    found.lines(0, 1)
    punch(found, MB, 4 * MB + 8192)
    page = found.lines(99_990, 3)
    assert [number_of(line) for line in page.lines] == [99_990, 99_991, 99_992]
    page = found.lines(80_000, 1)
    assert number_of(page.lines[0]) == 80_000
    assert page.first == 80_000


def test_a_gap_is_shown_with_its_size(log, punch):
    data = numbered(100_000)
    found = log(data)
    found.lines(0, 1)
    punch(found, MB, 4 * MB)
    before = data[:MB].count(b"\n")
    page = found.lines(before - 2, 10)
    ((place, gap),) = page.gaps
    assert page.lines[place] == "[... 3.0 MiB dropped here ...]"
    assert (gap.start, gap.end) == (MB, 4 * MB)
    assert gap.lines == data[MB : 4 * MB].count(b"\n")
    assert [number_of(line) for line in page.lines[: place - 1]] == [before - 2, before - 1]
    after = data[: 4 * MB].count(b"\n")
    # The parts of the two lines that the gap cut are shown as they are.
    assert data[:MB].decode().endswith(page.lines[place - 1])
    assert number_of(page.lines[place + 2]) == after + 1
    assert page.following == after + len(page.lines) - place - 1


def test_a_dropped_line_gives_the_gap_and_what_follows(log, punch):
    data = numbered(100_000)
    found = log(data)
    found.lines(0, 1)
    punch(found, MB, 4 * MB)
    dropped = data[: 2 * MB].count(b"\n")
    page = found.lines(dropped, 3)
    assert page.gaps[0][0] == 0
    after = data[: 4 * MB].count(b"\n")
    assert page.first == after
    assert page.following == after + 3
    assert number_of(page.lines[2]) == after + 1


def test_numbers_survive_a_restart_over_a_gap(log, punch):
    """What was counted is kept beside a log that is large enough to be bounded."""
    data = numbered(400_000)
    found = log(data)
    found.lines(0, 1)
    punch(found, MB, 20 * MB)
    again = LogFile(found.path)
    assert [number_of(line) for line in again.lines(399_000, 2).lines] == [399_000, 399_001]


def test_a_gap_that_nobody_counted_has_unknown_lines(log, punch):
    data = numbered(50_000)
    found = log(data)
    punch(found, MB, 2 * MB)
    page = found.lines(data[:MB].count(b"\n"), 2)
    assert page.gaps[0][1].lines is None


def test_tail_goes_over_a_gap(log, punch):
    data = numbered(40_000)
    found = log(data)
    start, end = MB, len(data) // 4096 * 4096 - 4096
    punch(found, start, end)
    after = data[end:].decode().splitlines()
    page = found.tail(len(after) + 1)
    place, gap = page.gaps[0]
    assert (gap.start, gap.end) == (start, end)
    assert place == 1
    assert page.lines[2:] == after
    assert found.tail(len(after)).gaps == ()


def test_raw_tells_of_gaps_and_never_sends_zeros(log, punch):
    data = numbered(50_000)
    found = log(data)
    punch(found, MB, 2 * MB)
    pieces = list(found.raw())
    assert [piece for piece in pieces if isinstance(piece, Gap)] == [Gap(MB, 2 * MB)]
    kept = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    assert kept == data[:MB] + data[2 * MB :]


def test_raw_in_parts_tells_of_a_gap_once(log, punch):
    data = numbered(50_000)
    found = log(data)
    punch(found, MB, 2 * MB)
    step = 300_000
    pieces = [piece for at in range(0, len(data), step) for piece in found.raw(at, step)]
    assert [piece for piece in pieces if isinstance(piece, Gap)] == [Gap(MB, 2 * MB)]
    kept = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    assert kept == data[:MB] + data[2 * MB :]


def test_a_log_that_was_cut_instead_of_punched_is_counted_anew(log):
    found = log(numbered(10_000))
    found.lines(0, 1)
    with open(found.path, "wb") as file:
        file.write(numbered(10))
    assert [number_of(line) for line in found.lines(5, 2).lines] == [5, 6]


def test_offsets_for_followers(log):
    data = numbered(100)
    found = log(data)
    assert found.tail_offset(1) == data.rindex(b"line 99")
    assert found.line_offset(50) == data.index(b"line 50 ")
    assert found.line_offset(1000) == len(data)
    assert found.tail_offset(0) == len(data)


def test_files_are_remembered_up_to_a_number(tmp_path):
    files = LogFiles(most=2)
    first = files.at(str(tmp_path / "1"))
    assert files.at(str(tmp_path / "1")) is first
    files.at(str(tmp_path / "2"))
    files.at(str(tmp_path / "3"))
    assert files.at(str(tmp_path / "1")) is not first


def test_no_descriptor_is_left_open(log):
    found = log(numbered(100))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        found.tail(5)
        found.lines(3, 3)
        next(found.raw())
    assert len(os.listdir("/proc/self/fd")) == before
