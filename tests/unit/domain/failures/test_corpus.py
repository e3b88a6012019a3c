"""The classifier against labelled logs: how often it is right, and that no error is a costly one."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from labelled_logs import CORPUS, judged, read_one
from runyard.domain.failures.categories import Category
from runyard.domain.failures.classify import classify
from runyard.domain.recovery.policy import NEVER_RETRIED

GOAL = 0.98
LABELLED = [read_one(path) for path in sorted((CORPUS / "failures").glob("*.txt"))]


def measure():
    """Rows of (category, logs, right), and what was taken for something else."""
    counts: Counter[Category] = Counter()
    right: Counter[Category] = Counter()
    wrong = defaultdict(list)
    for one in LABELLED:
        counts[one.category] += 1
        found = judged(one)
        right[one.category] += found is one.category
        if found is not one.category:
            wrong[one.category].append((one.name, found))
    return [(category, counts[category], right[category]) for category in sorted(counts)], wrong


def test_there_is_enough_to_measure():
    """R18"""
    assert len(LABELLED) >= 150
    assert len({one.category for one in LABELLED}) >= 35


def test_accuracy():
    """R18"""
    rows, wrong = measure()
    for category, logs, right in rows:
        print(f"{category:20} {right}/{logs}")
    share = sum(right for *_, right in rows) / len(LABELLED)
    print(f"right: {share:.1%}; wrong: {dict(wrong)}")
    assert share >= GOAL, dict(wrong)


def test_no_retry_that_cannot_help():
    """R20: what must not be retried is never taken for what is."""
    harmful = {
        one.name: judged(one)
        for one in LABELLED
        if one.category in NEVER_RETRIED and judged(one) not in NEVER_RETRIED
    }
    assert harmful == {}


@pytest.mark.parametrize("one", LABELLED, ids=lambda one: one.name)
def test_the_proof_is_in_the_log(one):
    found = classify(one.evidence)
    if found is None or found.root is None:
        return
    lines = [line.text for log in one.evidence.logs for line in log.tail]
    lines += one.evidence.host.kernel_lines
    assert any(
        found.root.text in line or line.strip() in found.root.text for line in lines if line
    )
    assert 0 <= found.root.number <= len(lines)
