"""The classifier against labelled logs: how often it is right, and that no error is a costly one."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

from runyard.domain.failures.categories import Category
from runyard.domain.failures.classify import classify
from runyard.domain.failures.evidence import (
    Evidence,
    GpuFact,
    HostFacts,
    LastMetrics,
    RankLog,
    lines_of,
)
from runyard.domain.recovery.policy import NEVER_RETRIED

FOLDER = Path(__file__).parents[3] / "corpus" / "failures"
GOAL = 0.98


@dataclass(frozen=True)
class Labelled:
    name: str
    category: Category
    evidence: Evidence


def read(path: Path) -> Labelled:
    """The first line tells what it is and how it ended; `# kernel:` lines follow it, then the log."""
    head, _, text = path.read_text(encoding="utf-8").partition("\n")
    told = dict(pair.split("=", 1) for pair in head.removeprefix("# ").split(" "))
    kernel = []
    while text.startswith("# kernel: "):
        line, _, text = text.partition("\n")
        kernel.append(line.removeprefix("# kernel: "))
    gpus = (GpuFact(0, "GPU-a", xids=(int(told["xid"]),)),) if "xid" in told else ()
    finite = {"False": False, "True": True}.get(told.get("loss_finite", ""))
    bad = int(told["bad_step"]) if "bad_step" in told else None
    evidence = Evidence(
        exit_code=int(told["exit"]) if told["exit"] else None,
        signal=int(told["signal"]) if told["signal"] else None,
        cause=told["cause"],
        stop_cause=told.get("stop"),
        oom_kills=int(told.get("oom_kills", "0")),
        logs=(RankLog(tail=lines_of(text)),),
        metrics=LastMetrics(loss_finite=finite, first_bad_step=bad),
        host=HostFacts(gpus=gpus, kernel_lines=tuple(kernel)),
        world_size=int(told.get("world", "1")),
    )
    return Labelled(path.stem, Category(told["category"]), evidence)


LABELLED = [read(path) for path in sorted(FOLDER.glob("*.txt"))]


def judged(one: Labelled) -> Category:
    found = classify(one.evidence)
    return Category.UNKNOWN if found is None else found.category


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
