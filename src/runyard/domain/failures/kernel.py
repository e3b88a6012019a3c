"""What the kernel said while an attempt ran, as far as it is about that attempt: it kills the
processes of anybody."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runyard.domain.failures import scan
from runyard.domain.failures.categories import Category
from runyard.domain.failures.evidence import Evidence, LogLine, RankLog
from runyard.domain.failures.observation import Observation

RANK = -1  # under which its log is read
MOST_LINES = 200
_TELLING = (Category.HOST_OOM, Category.GPU_HW, Category.CUDA_FAULT)
_PID = re.compile(r"Kill(?:ed)? process (\d{1,10})|\bpid=(\d{1,10})")
_KILLED = re.compile(r"(?i)\bkilled\b|sigkill|exitcode {0,3}: -9|return code = -9|status 137")
_KILL = (9,)
_KILL_CODES = (137, -9)


def observed(evidence: Evidence, said: Sequence[Observation]) -> list[Observation]:
    """`said` are the observations in the attempt's own logs."""
    lines = evidence.host.kernel_lines[-MOST_LINES:]
    if not lines:
        return []
    tail = tuple(LogLine(number, text) for number, text in enumerate(lines))
    found = scan.observe(scan.texts(RankLog(RANK, (), tail)), RANK)
    return [
        one
        for one in found
        if one.category in _TELLING
        and (one.category is not Category.HOST_OOM or _ours(one, evidence, said))
    ]


def killed(line: str) -> int | None:
    """The process that it says was killed."""
    found = _PID.search(line)
    return None if found is None else int(found.group(1) or found.group(2))


def _ours(one: Observation, evidence: Evidence, said: Sequence[Observation]) -> bool:
    """A process that was seen to be the attempt's, or that its own log names. Of another one it
    must do that something below the main process was killed: that one's own number is known."""
    pid = killed(one.text.body)
    if pid is not None and evidence.own_pids:
        named = re.compile(rf"\b{pid}\b")
        if pid in evidence.own_pids or any(named.search(line.text.body) for line in said):
            return True
        if evidence.signal is not None:
            return False
    return (
        evidence.signal in _KILL
        or evidence.exit_code in _KILL_CODES
        or any(_KILLED.search(line.text.body) for line in said)
    )
