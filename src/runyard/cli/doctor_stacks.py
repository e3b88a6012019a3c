"""Whether a program that hangs can be asked where it is, though it never heard of Runyard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from runyard.cli.doctor_check import Check

_NAME = "stacks"
_INSTALL = "pip install 'runyard[stacks]' brings py-spy, which reads the stacks of any Python"
_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")


def stacks() -> Iterator[Check]:
    """Without py-spy nothing fails: the alert about a stall only says less."""
    from runyard.supervisor import stack_dump

    found = stack_dump.py_spy()
    if found is None:
        seen = "no py-spy: only programs that call runyard.report tell where they hang"
        yield Check(_NAME, "ok", seen, _INSTALL)
    elif os.geteuid() != 0 and _scope() != "0":
        seen = f"{found} may not read other processes (kernel.yama.ptrace_scope = {_scope()})"
        advice = "sysctl kernel.yama.ptrace_scope=0, or let the server have CAP_SYS_PTRACE."
        yield Check(_NAME, "warn", seen, advice)
    else:
        yield Check(_NAME, "ok", f"read by {found} when a job hangs")


def _scope() -> str:
    """A kernel without this module restricts nothing."""
    try:
        return _SCOPE.read_text().strip()
    except OSError:
        return "0"
