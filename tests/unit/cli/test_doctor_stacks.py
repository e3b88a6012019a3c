"""Whether stacks of a program that hangs can be read, as `runyard doctor` says it."""

from __future__ import annotations

import pytest

from runyard.cli import doctor_stacks
from runyard.supervisor import stack_dump


@pytest.mark.parametrize(
    ("found", "user", "scope", "level", "words"),
    [
        (None, 0, "0", "ok", "no py-spy"),
        ("/opt/py-spy", 0, "2", "ok", "/opt/py-spy"),
        ("/opt/py-spy", 1000, None, "ok", "/opt/py-spy"),
        ("/opt/py-spy", 1000, "0\n", "ok", "/opt/py-spy"),
        ("/opt/py-spy", 1000, "1\n", "warn", "ptrace_scope = 1"),
    ],
)
def test_what_is_there_and_what_it_may(monkeypatch, tmp_path, found, user, scope, level, words):
    monkeypatch.setattr(stack_dump, "py_spy", lambda: found)
    monkeypatch.setattr(doctor_stacks.os, "geteuid", lambda: user)
    monkeypatch.setattr(doctor_stacks, "_SCOPE", tmp_path / "scope")
    if scope is not None:
        (tmp_path / "scope").write_text(scope)
    [check] = doctor_stacks.stacks()
    assert check.level == level
    assert words in check.seen
    assert bool(check.advice) is (found is None or level == "warn")
