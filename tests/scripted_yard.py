"""A real yard whose executor and machine are scripted."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence

from runyard.engine.hub import Hub
from runyard.engine.node.machine import Machine
from runyard.engine.parts import Parts
from runyard.engine.yard import Yard
from runyard.executors.base import Executor, Images
from runyard.settings import Settings
from runyard.stores.base import Store
from scripted_machine import ScriptedMachine


def compose(
    settings: Settings,
    store: Store,
    executor: Executor,
    machine: ScriptedMachine,
    node_id: str = "node-1",
    clock: Callable[[], float] = time.time,
    others: Sequence[Executor] = (),
    images: Images | None = None,
) -> tuple[Parts, Yard]:
    """A yard that is not opened yet, and what it is made of."""

    def live_tags() -> set[int]:
        with store.read() as reader:
            return {attempt.tag for attempt in reader.live_attempts()}

    parts = Parts(
        settings=settings,
        store=store,
        executors={one.name: one for one in (executor, *others)},
        machine=Machine(
            settings,
            machine,
            machine,
            locked_elsewhere=lambda _uuid: False,
            tag_of=machine.tag_of,
            live_tags=live_tags,
            clock=clock,
        ),
        hub=Hub(),
        node_id=node_id,
        clock=clock,
        random=secrets.token_bytes,
        images=images,
    )
    return parts, Yard(parts, machine.tag_of)
