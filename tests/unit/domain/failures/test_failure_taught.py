"""Endings that were thought out to find what the classifier misses, and taught to it: settings,
data, paths and surroundings that libraries refuse; errors that were survived before another one
ended the program; and errors that were told of and did end it."""

from __future__ import annotations

from pathlib import Path

import pytest

from labelled_logs import measure, read_set

TAUGHT = sorted((Path(__file__).parent / "taught").glob("*.txt"))


@pytest.mark.parametrize("path", TAUGHT, ids=lambda path: path.stem)
def test_each_is_named(path):
    """R18, R20"""
    logs = read_set(path)
    assert len({one.name for one in logs}) == len(logs) >= 25
    assert measure(logs).wrong == []


def test_there_are_all_of_them():
    assert [path.stem for path in TAUGHT] == [
        "settings_and_data",
        "survived_then_other",
        "told_and_final",
    ]
