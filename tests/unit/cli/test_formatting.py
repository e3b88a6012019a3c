"""Amounts and times as text."""

import pytest

from runyard.cli import formatting, tables


def test_resources_as_people_write_them():
    """R37"""
    job = {"cpu_cores": 8, "memory_gb": 32, "gpu_count": 2, "gpu_type": None}
    assert formatting.resources(job) == "8C / 32GB / 2GPU"
    assert (
        formatting.resources({"cpu_cores": 0.5, "memory_gb": 0.25, "gpu_count": 0})
        == "0.5C / 256MB"
    )
    assert formatting.resources({}) == "-"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.9, "59s"), (61, "1m 1s"), (660, "11m"), (3700, "1h 1m"), (90000, "1d 1h")],
)
def test_spans(seconds, text):
    assert formatting.span(seconds) == text


def test_times_of_the_api_are_read():
    assert formatting.epoch("1970-01-01T00:01:00Z") == 60
    assert formatting.epoch(60) == 60
    assert formatting.epoch("nonsense") is None
    assert formatting.epoch(None) is None


def test_what_a_terminal_would_obey_is_removed():
    assert formatting.clean("a\x1b[31mred\nb\u202e") == "a[31mred b"


def test_chinese_letters_take_two_columns():
    assert formatting.columns("训练 a") == 6
    assert formatting.cut("训练任务", 5) == "训练…"
    lines = tables.lines(("A", "B"), [["训练", "x"], ["ab", "y"]])
    assert lines[1:] == ["训练  x", "ab    y"]


def test_bars():
    assert formatting.bar(0).startswith("░")
    assert formatting.bar(100) == "█" * 10 + " 100%"


def test_a_narrow_terminal_shortens_only_what_may_be_shortened():
    rows = [["job-abc123", "a long name that goes on and on", "running", "why " * 20]]
    heading, row = tables.lines(("ID", "NAME", "STATUS", "WHY"), rows, elastic=(1, 3), width=60)
    assert formatting.columns(row) <= 60
    assert formatting.columns(heading) <= 60
    assert "job-abc123" in row
    assert "running" in row
    assert "…" in row


def test_a_terminal_too_narrow_for_anything_is_not_overrun():
    rows = [["job-abc123", "name", "running"]]
    for line in tables.lines(("ID", "NAME", "STATUS"), rows, elastic=(1,), width=15):
        assert formatting.columns(line) <= 15
