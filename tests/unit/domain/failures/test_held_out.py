"""Logs the classifier was not taught when they were written. They were improved on afterwards, so
that these figures only show that nothing is unlearned; docs/failures.md has those of first sight."""

from __future__ import annotations

import pytest

from labelled_logs import HELD_OUT, measure, read_set

SETS = sorted(HELD_OUT.glob("*.txt"))
WRONG = 0.05  # names that are near to each other, as those of code and of its settings


def test_there_are_enough():
    """R18"""
    assert sum(len(read_set(path)) for path in SETS) >= 180


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_what_cannot_be_helped_is_not_tried_again(path):
    """R18, R20"""
    found = measure(read_set(path))
    assert found.harmful == []
    assert len(found.wrong) <= WRONG * found.logs, found.wrong
