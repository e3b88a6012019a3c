"""What the machine and the GPUs tell about an attempt that ended."""

from __future__ import annotations

from collections.abc import Sequence, Set

from runyard.domain.failures import kernel, xid
from runyard.domain.failures.evidence import GpuFact, HostFacts
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring.series import Sample
from runyard.engine import job_dirs
from runyard.engine.parts import Parts
from runyard.engine.recover import disk_room
from runyard.executors.base import End
from runyard.probes.base import KernelLine

EARLY_S = 2.0  # the kernel's clock and ours are not quite the same
NEAR_S = 5.0  # between a kill and the end it leads to
LATE_S = 30.0  # how long after an end something is still told of it
MOST_LINES = 100


def of_end(
    parts: Parts, job: Job, attempt: Attempt, end: End, pids: Set[int] = frozenset()
) -> HostFacts:
    data_dir = str(parts.settings.data_dir)
    # Where an error says nothing of the place, the fullest of those it writes to is meant.
    output, saves = job_dirs.output_dir(job, data_dir), job_dirs.checkpoint_dir(job, data_dir)
    folder = disk_room.fullest((saves, output, data_dir))
    free = disk_room.free_bytes(folder)
    lines = _kernel_lines(parts, attempt, end, pids)
    return HostFacts(
        disk_free_bytes=free,
        disk_path=None if free is None else folder,
        memory_limit_mb=end.detail.get("limit_mb"),
        memory_peak_mb=end.detail.get("memory_peak_mb"),
        gpus=_gpus(parts, attempt, end, lines),
        kernel_lines=tuple(line.text for line in lines),
    )


def _kernel_lines(parts: Parts, attempt: Attempt, end: End, pids: Set[int]) -> list[KernelLine]:
    """Since it began: errors of its own GPUs, and kills for memory, of its processes or of ones
    unknown to us just when it ended."""
    if parts.kernel_log is None or attempt.node_id != parts.node_id:
        return []
    began = _began(attempt, end)
    own = {grant.uuid for grant in attempt.gpus}
    found = [
        line
        for line in parts.kernel_log.since(began - EARLY_S)
        if line.at <= end.ended_at + LATE_S
        and (line.gpu_uuid in own if line.gpu_uuid else _kill(line, end, pids))
    ]
    return found[-MOST_LINES:]


def _kill(line: KernelLine, end: End, pids: Set[int]) -> bool:
    pid = kernel.killed(line.text)
    return pid in pids or (pid is not None and abs(line.at - end.ended_at) <= NEAR_S)


def _gpus(
    parts: Parts, attempt: Attempt, end: End, lines: Sequence[KernelLine]
) -> tuple[GpuFact, ...]:
    machine = parts.machine
    if attempt.machine_id != machine.machine_id:
        return ()
    known = {gpu.uuid: gpu for gpu in machine.capacity.gpus}
    began = _began(attempt, end)
    facts = []
    for grant in attempt.gpus:
        gpu = known.get(grant.uuid)
        held = {holder.pid for holder in gpu.holders} if gpu is not None else set()
        strangers = sum(one.memory_mb for one in machine.processes(grant.uuid) if one.pid in held)
        told = [xid.in_line(line.text) for line in lines if line.gpu_uuid == grant.uuid]
        measured = _window(parts, grant.index, "xid")
        numbers = [int(one.value) for one in measured if one.at > began and one.value > 0]
        facts.append(
            GpuFact(
                grant.index,
                grant.uuid,
                None if gpu is None else gpu.memory_mb,
                machine.used_mb(grant.uuid),
                strangers,
                tuple(dict.fromkeys([*(one for one in told if one), *numbers])),
                _new_errors(_window(parts, grant.index, "ecc_errors"), began),
            )
        )
    return tuple(facts)


def _window(parts: Parts, index: int, name: str) -> list[Sample]:
    return parts.board.node_window(parts.node_id, f"gpu.{index}.{name}")


def _new_errors(counts: Sequence[Sample], began: float) -> int:
    """The count goes on from before; what it was then, or when it was first seen, is not new."""
    if not counts:
        return 0
    before = [sample for sample in counts if sample.at <= began]
    first = (before[-1:] or counts[:1])[0]
    return max(0, int(counts[-1].value - first.value))


def _began(attempt: Attempt, end: End) -> float:
    return end.started_at or attempt.started_at or attempt.created_at
