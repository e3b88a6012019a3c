"""docs/failures.md shows the accuracy that is measured and the policy that is followed.
`UPDATE_FAILURES=1` writes both tables anew."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

from runyard.domain.failures.categories import Category, failure_type
from runyard.domain.recovery import policy

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[3] / "docs" / "failures.md"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in row) + " |\n" for row in lines)


def accuracy():
    rows, wrong = runpy.run_path(str(HERE / "test_corpus.py"))["measure"]()
    mistaken = [pair for pairs in wrong.values() for pair in pairs]
    never = [row for row in rows if row[0] in policy.NEVER_RETRIED]
    harmful = sum(
        found not in policy.NEVER_RETRIED
        for category, pairs in wrong.items()
        if category in policy.NEVER_RETRIED
        for _, found in pairs
    )
    logs, right = sum(row[1] for row in rows), sum(row[2] for row in rows)
    total = [
        ("all", logs, right, f"{right / logs:.1%}"),
        (
            "never retried",
            sum(row[1] for row in never),
            sum(row[2] for row in never),
            f"{harmful} harmful",
        ),
    ]
    each = [(f"`{c}`", n, r, "" if n == r else f"{r / n:.0%}") for c, n, r in rows]
    assert len(mistaken) == logs - right
    return table(("category", "logs", "right", ""), [*total, *each])


def policies():
    rows = []
    for category in Category:
        row = policy.ROWS[category]
        if row.strategy is policy.Strategy.GIVE_UP:
            cells = ("0", "", "", "")
        else:
            own = "no limit" if row.budget is None else str(row.budget)
            waits = (
                "`retry_delays`"
                if row.delays is None
                else ", ".join(f"{one:g} s" for one in row.delays)
            )
            cells = (own, waits, row.charge.value.replace("_", " "), row.same_root)
        rows.append((f"`{category}`", f"`{failure_type(category)}`", row.strategy.value, *cells))
    head = (
        "category",
        "failure type",
        "strategy",
        "own retries",
        "waits",
        "charged to max_retries",
        "same root",
    )
    return table(head, rows)


def test_the_document_is_up_to_date():
    """R18, R20"""
    text = DOCUMENT.read_text(encoding="utf-8")
    wanted = text
    for name, made in (("accuracy", accuracy()), ("policy", policies())):
        marked = re.compile(rf"<!-- {name} -->\n.*?<!-- end -->", re.DOTALL)
        assert marked.search(wanted)
        wanted = marked.sub(
            lambda _, name=name, made=made: f"<!-- {name} -->\n{made}<!-- end -->", wanted
        )
    if os.environ.get("UPDATE_FAILURES"):
        DOCUMENT.write_text(wanted, encoding="utf-8")
    assert wanted == text or os.environ.get("UPDATE_FAILURES"), "run it with UPDATE_FAILURES=1"
