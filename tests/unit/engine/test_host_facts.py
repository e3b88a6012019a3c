"""What the machine tells about an attempt: kernel lines of its time and its GPUs, new errors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine_yard import SMALL, EngineYard
from runyard.domain.failures.categories import Category
from runyard.domain.monitoring.series import Sample
from runyard.domain.resources import GpuGrant
from runyard.engine.recover import host_facts
from runyard.engine.recover.diagnosing import Diagnoser
from runyard.executors.base import End
from runyard.probes.base import KernelLine

KILL = "Out of memory: Killed process 4711 (python3)"
XID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
BEGAN, ENDED = 1000.0, 1100.0


class Kernel:
    def __init__(self, *lines):
        self.lines = lines

    def since(self, at):
        return [line for line in self.lines if line.at >= at]


@pytest.fixture
def yard(tmp_path):
    made = EngineYard(tmp_path / "data").open()
    yield made
    made.close()


def facts(yard, *lines):
    ref = yard.running(**SMALL)
    [attempt], job = yard.attempts(ref), yard.job(ref)
    attempt = replace(attempt, gpus=(GpuGrant("GPU-a", 0, 1000),))
    end = End(1, None, "exited", "supervisor", ENDED, BEGAN)
    parts = replace(yard.parts, kernel_log=Kernel(*lines))
    return host_facts.of_end(parts, job, attempt, end)


def test_lines_of_its_time_and_its_gpus(yard):
    """R18"""
    found = facts(
        yard,
        KernelLine(500.0, KILL),
        KernelLine(1050.0, KILL),
        KernelLine(1098.0, KILL.replace("4711", "4712")),
        KernelLine(1060.0, XID, "GPU-a"),
        KernelLine(1061.0, XID.replace("79", "48"), "GPU-other"),
        KernelLine(1062.0, XID.replace("79", "62")),
        KernelLine(1500.0, KILL),
    )
    assert found.kernel_lines == (KILL.replace("4711", "4712"), XID)
    assert found.gpus[0].xids == (79,)


def test_errors_that_were_measured_while_it_ran(yard):
    board, node = yard.parts.board, yard.parts.node_id
    counts = [(900.0, 3.0), (1010.0, 3.0), (1090.0, 5.0)]
    board.record_node(node, [Sample("gpu.0.ecc_errors", at, value) for at, value in counts])
    seen = [(900.0, 13.0), (1050.0, 0.0), (1060.0, 48.0), (1060.000001, 45.0)]
    board.record_node(node, [Sample("gpu.0.xid", at, value) for at, value in seen])
    [gpu] = facts(yard).gpus
    assert (gpu.ecc_errors, gpu.xids) == (2, (48, 45))


def test_without_a_kernel_log_or_measurements(yard):
    [gpu] = facts(yard).gpus
    assert (gpu.ecc_errors, gpu.xids) == (0, ())


@pytest.mark.parametrize(
    ("seen", "category"), [(4711, Category.HOST_OOM), (99, Category.UNKNOWN_KILL)]
)
def test_a_kill_of_its_own_process_is_the_diagnosis(yard, seen, category):
    """R18: told from a kill -9 of somebody, also where no cgroup counts kills."""
    ref = yard.running()
    [attempt] = yard.attempts(ref)
    yard.parts.board.begin(attempt.job_id, attempt.number)
    yard.parts.board.note_pids(attempt.job_id, attempt.number, (seen,))
    end = End(None, 9, "killed_externally", "supervisor", ENDED, BEGAN)
    diagnoser = Diagnoser(replace(yard.parts, kernel_log=Kernel(KernelLine(1050.0, KILL))))
    found = diagnoser.of_ends([(attempt.attempt_id, end)])[attempt.attempt_id]
    assert found.category is category
