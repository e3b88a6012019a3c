"""The list of containment tests is true: names, files, and which run in a container."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROW = re.compile(r"^\| `([\w*]+)` \| `([\w/.]+)` \| ([^|]+) \|$", re.MULTILINE)
LEFT_OUT = re.compile(r"^\| `([\w*]+)` \| [^`|][^|]*(?:`\w+`[^|]*)* \|$", re.MULTILINE)
CONTAINER = {"pytest.mark.container", "container"}


@cache
def functions_of(path: Path) -> dict[str, bool]:
    """The test functions of a file, and whether each is marked to run in a container too."""
    functions = [
        node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)
    ]
    return {
        function.name: bool(CONTAINER & {ast.unparse(mark) for mark in function.decorator_list})
        for function in functions
        if function.name.startswith("test_")
    }


def parts(root) -> tuple[list[tuple[str, str, str]], list[str]]:
    """The rows of the tables, and the names that were left out."""
    text = (root / "docs/containment.md").read_text()
    tables, left_out = text.split("\n## Left out\n")
    return ROW.findall(tables), LEFT_OUT.findall(left_out)


def test_every_name_is_a_test(root):
    rows, _ = parts(root)
    assert len(rows) > 110
    missing = [
        f"{file}: test_{name}"
        for name, file, _ in rows
        if f"test_{name}" not in functions_of(root / file)
    ]
    assert not missing


def test_both_engines_are_held_to_the_same(root):
    rows, _ = parts(root)
    promises = {"run", "code", "oom", "stop", "kill", "ended_409", "adopt_after_server_kill9"}
    for engine in ("docker", "podman"):
        prefix = f"engine_{engine}_"
        named = {name.removeprefix(prefix) for name, _, _ in rows if name.startswith(prefix)}
        assert named == promises


def test_what_is_said_to_run_in_a_container_does(root):
    rows, _ = parts(root)
    said = {(file, f"test_{name}") for name, file, where in rows if "container" in where}
    marked = {
        (str(path.relative_to(root)), name)
        for path in (root / "tests").rglob("test_*.py")
        for name, in_container in functions_of(path).items()
        if in_container
    }
    directly = {pair for pair in said if pair[0] == "tests/integration/test_in_container.py"}
    assert said - directly == marked


def test_what_was_left_out_has_no_test(root):
    """Once there is one, its row belongs into the tables."""
    _, left_out = parts(root)
    assert left_out
    names = {name for path in (root / "tests").rglob("test_*.py") for name in functions_of(path)}
    for name in left_out:
        pattern = re.compile(f"test_{name.replace('*', '.*')}")
        assert not [found for found in names if pattern.fullmatch(found)], name
