"""What does a scheduling pass cost with 200 gangs queued while 20 run on a cluster?"""

from __future__ import annotations

import secrets
import tempfile
import time
from pathlib import Path
from typing import Any

from measurement import begin, median, percentile, quick
from runyard.domain.distributed import Distributed
from runyard.domain.job import JobSpec, JobType, NewJob, Priority
from runyard.domain.resources import Capacity, Gpu, Load, Request
from runyard.engine.hub import Hub
from runyard.engine.node.machine import Machine
from runyard.engine.parts import Parts
from runyard.engine.schedule.placing import Placer
from runyard.settings import Settings
from runyard.stores.base import Store
from runyard.stores.base_machines import Node
from runyard.stores.opening import open_store

RUNNING, QUEUED = 20, 200
PASSES = 5 if quick() else 200


class NoMachine:
    """This server's own machine takes nothing here."""

    def machine_id(self) -> str:
        return "machine"

    boot_id = machine_id

    def cpu_milli(self) -> int:
        return 1000

    memory_mb = cpu_milli

    def load(self) -> Load:
        return Load(1.0, 1.0, 1.0)

    def gpus(self) -> list[Gpu]:
        return []


def node(number: int) -> Node:
    name = f"ray-{number:03d}"
    gpus = tuple(Gpu(index, f"{name}-{index}", "NVIDIA H100", 81_920) for index in range(8))
    return Node(
        node_id=name,
        name=name,
        machine_id=name,
        boot_id="",
        url="",
        epoch=0,
        capacity=Capacity(64_000, 512 * 1024, gpus),
        load=None,
        executors=("ray",),
        drained=False,
        heartbeat_at=time.time(),
        kind="ray",
        address=name,
        cluster="one",
    )


def gang(number: int, shapes: int, gpus: int) -> NewJob:
    """`shapes` decides how many of them differ in what they need."""
    spec = JobSpec(
        name=f"gang {number}",
        command="true",
        job_type=JobType.DISTRIBUTED,
        executor="ray",
        request=Request(1000 + number % shapes, 4096, gpus * 1000),
        distributed=Distributed(nodes=2, placement="spread"),
    )
    ref = f"job-{number:012d}"
    return NewJob(ref, spec, Priority.MEDIUM, "bench", time.time() + number * 1e-3)


def passes(store: Store, parts: Parts, shapes: int) -> list[float]:
    """20 gangs fill the GPUs, 200 wait for them; each pass looks at all and starts none. In
    milliseconds of CPU, with what the store does for it."""
    placer = Placer(parts)
    placer.dispatching = True
    per_gang = len(parts.machine.offered) * 8 // (2 * RUNNING) or 1
    first = [gang(number, 1, per_gang) for number in range(RUNNING)]
    store.write(lambda tx: tx.insert_jobs(first))
    placed = store.write(lambda tx: placer.place(tx, time.time()))
    waiting = [gang(RUNNING + number, shapes, 8) for number in range(QUEUED)]
    store.write(lambda tx: tx.insert_jobs(waiting))
    store.write(lambda tx: placer.place(tx, time.time()))
    assert placed, "nothing runs"
    taken = []
    for _ in range(PASSES):
        began = time.process_time()
        again = store.write(lambda tx: placer.place(tx, time.time()), durable=False)
        taken.append((time.process_time() - began) * 1e3)
        assert not again
    return taken


def measure(nodes: int, shapes: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder), max_concurrent=1000)
        store = open_store(settings.store_url)
        try:
            probe: Any = NoMachine()
            machine = Machine(
                settings,
                probe,
                probe,
                locked_elsewhere=lambda _uuid: False,
                tag_of=lambda _pid: None,
                live_tags=set,
                clock=time.time,
            )
            machine.offered = tuple(node(number) for number in range(nodes))
            parts = Parts(
                settings=settings,
                store=store,
                executors={},
                machine=machine,
                hub=Hub(),
                node_id="node-1",
                clock=time.time,
                random=secrets.token_bytes,
            )
            return passes(store, parts, shapes)
        finally:
            store.close()


def main() -> None:
    result = begin(__doc__ or "")
    for nodes in (3, 20):
        for shapes, alike in ((1, "alike"), (10, "of 10 kinds"), (QUEUED, "all different")):
            taken = measure(nodes, shapes)
            goal = "<= 5" if shapes <= 10 else ""
            name = f"{nodes} nodes, {QUEUED} waiting, {alike}"
            result.add(f"{name}, p50", median(taken), "ms", goal)
            result.add(f"{name}, p95", percentile(taken, 95), "ms")
    result.keep()


if __name__ == "__main__":
    main()
