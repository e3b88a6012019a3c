"""Finding lines in a log."""

import time

import pytest

from runyard.domain import errors
from runyard.logs.log_search import grep

MB = 1024 * 1024


def test_lines_with_a_text_and_their_numbers(log):
    found = log(b"".join(b"line %d\n" % n for n in range(5000)))
    page = grep(found, "line 4321")
    assert page.lines == ["line 4321"]
    assert page.numbers == [4321]


def test_the_last_matches_with_tail(log):
    found = log(b"".join(b"line %d\n" % n for n in range(100_000)))
    page = grep(found, "7", tail=3)
    assert page.lines == ["line 99979", "line 99987", "line 99997"]


def test_the_first_matches_from_a_line_on(log):
    found = log(b"".join(b"line %d\n" % n for n in range(1000)))
    page = grep(found, "5", first=500, limit=2)
    assert page.lines == ["line 500", "line 501"]
    assert page.following == 502


def test_what_a_carriage_return_wiped_out_is_not_found(log):
    found = log(b"error\rok\nerror\n")
    assert grep(found, "error").numbers == [1]


def test_each_line_is_found_once(log):
    assert grep(log(b"aaaa\nb\naa\n"), "a").numbers == [0, 2]


def test_text_in_other_scripts_and_damaged_bytes(log):
    found = log("损失 1.5\n".encode() + b"\xff\xfe loss\n")
    assert grep(found, "损失").numbers == [0]
    assert grep(found, "loss").numbers == [1]


def test_gaps_are_left_out(log, punch):
    found = log(b"".join(b"line %06d\n" % n for n in range(400_000)))
    found.lines(0, 1)
    punch(found, MB, 3 * MB)
    assert grep(found, "line 399999").numbers == [399_999]
    assert grep(found, "line 200000").lines == []


def test_lines_longer_than_a_piece_are_found(log):
    found = log(b"x" * (3 * MB) + b" needle\nother\n")
    assert grep(found, "needle").numbers == [0]


def test_a_simple_pattern(log):
    found = log(b"epoch 1 loss=0.5\nepoch 2 loss=nan\nepoch 3\n")
    assert grep(found, r"epoch \d+ .*loss=(nan|inf)", regex=True).numbers == [1]
    assert grep(found, r"^epoch 3$", regex=True).numbers == [2]
    assert grep(found, r"\d+", regex=True, tail=1).numbers == [2]


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+$",
        r"(a|aa)+$",
        r"(a*)*b",
        r".*.*.*x",
        r"(.)\1",
        r"(?=a)b",
        r"a{1,5000}b{1,5000}c{1,5000}",
        r"(unclosed",
        "x" * 500,
    ],
)
def test_patterns_that_could_run_away_are_refused(log, pattern):
    with pytest.raises(errors.InvalidRequest) as caught:
        grep(log(b"a" * 100), pattern, regex=True)
    assert caught.value.params["fields"][0]["code"] == "bad_pattern"


def test_the_worst_pattern_that_is_allowed_ends_soon(log):
    found = log((b"a" * 2000 + b"\n") * 3)
    began = time.process_time()
    assert grep(found, r"a*a*b", regex=True).lines == []
    assert time.process_time() - began < 30


def test_a_search_that_takes_too_long_says_that_it_is_not_complete(log):
    found = log(b"line\n" * (MB // 2))
    page = grep(found, "absent", seconds=0)
    assert not page.complete


def test_capitals_do_not_matter_when_asked(log):
    found = log("Loss 1\nno\nLOSS 2\nÄrger\nloss\rgone\n".encode())
    assert grep(found, "loss", ignore_case=True).lines == ["Loss 1", "LOSS 2"]
    assert grep(found, "loss").lines == []
    assert grep(found, "äRGER", ignore_case=True).numbers == [3]
    assert grep(found, r"^loss \d", regex=True, ignore_case=True).numbers == [0, 2]
