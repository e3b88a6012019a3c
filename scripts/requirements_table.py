"""Prints each requirement with the tests that name it and how they ended in the last run."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"\bR\d+\b")
DOCUMENTED = re.compile(r"^\| (R\d+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def documented_rows(text: str) -> dict[str, tuple[str, str]]:
    """Row -> (requirement, release), as docs/requirements.md has them."""
    return {
        row: (text_.strip(), release.strip()) for row, text_, release in DOCUMENTED.findall(text)
    }


def tests_naming_rows(folder: Path) -> Iterator[tuple[str, str]]:
    """(row, node id) for every test function whose docstring names the row."""
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
                "test_"
            ):
                for row in sorted(set(ROW.findall(ast.get_docstring(node) or ""))):
                    yield row, f"{path.relative_to(ROOT)}::{node.name}"


def recorded_outcomes(folder: Path) -> dict[str, set[str]]:
    """Node id without its parameters -> outcomes seen."""
    seen: dict[str, set[str]] = defaultdict(set)
    for path in sorted(folder.glob("*.json")):
        for node_id, entry in json.loads(path.read_text()).items():
            file, _, rest = node_id.partition("::")
            seen[f"{file}::{rest.split('::')[-1].partition('[')[0]}"].add(entry["outcome"])
    return seen


def verdict(outcomes: set[str]) -> str:
    for word in ("failed", "passed", "skipped"):
        if word in outcomes:
            return word
    return "not run"


def main() -> int:
    rows = documented_rows((ROOT / "docs" / "requirements.md").read_text())
    tests = defaultdict(list)
    for row, test in tests_naming_rows(ROOT / "tests"):
        tests[row].append(test)
    outcomes = recorded_outcomes(
        Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/outcomes"
    )
    failed = missing = 0
    for row, (text, release) in rows.items():
        print(f"{row:4} {release:8} {text[:100]}")
        for test in tests[row]:
            word = verdict(outcomes.get(test, set()))
            failed += word == "failed"
            print(f"     {word:8} {test}")
        if not tests[row]:
            missing += release != "later"
            print("     " + ("missing" if release != "later" else "a later release"))
    unknown = sorted(set(tests) - set(rows))
    if unknown:
        print(f"\nnamed by tests but not documented: {', '.join(unknown)}")
    print(f"\n{len(rows)} rows; {missing} of this release without a test; {failed} tests failed")
    return 1 if failed or missing or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
