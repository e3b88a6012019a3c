"""What the parts of the engine share: the ports, the settings and who this node is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from runyard.engine.hub import Hub
from runyard.engine.node.machine import Machine
from runyard.engine.tallies import Tallies
from runyard.engine.watch.board import Board
from runyard.executors.base import Executor, Images
from runyard.probes.base import CheckpointCheck, EventFiles, KernelNews
from runyard.probes.readings import GpuMeter, NodeMeter
from runyard.settings import Settings
from runyard.stores.base import Store


@dataclass(frozen=True, slots=True)
class Parts:
    settings: Settings
    store: Store
    executors: Mapping[str, Executor]
    machine: Machine
    hub: Hub
    node_id: str
    clock: Callable[[], float]
    random: Callable[[int], bytes]
    board: Board = field(default_factory=Board)
    event_files: EventFiles | None = None
    checkpoint_check: CheckpointCheck | None = None
    node_meter: NodeMeter | None = None
    gpu_meter: GpuMeter | None = None
    kernel_log: KernelNews | None = None
    tallies: Tallies = field(default_factory=Tallies)
    images: Images | None = None  # of the executor that runs them
