"""Which GPUs are close to each other: linked by NVLink, else on the same NUMA node."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

SYS_PCI = Path("/sys/bus/pci/devices")


def group_names(nvml: Any, handles: Mapping[int, Any], sys_pci: Path = SYS_PCI) -> dict[int, str]:
    """Index -> group: "nvlink-0", "numa-1", or "" where nothing is known. The number of an NVLink
    island is its lowest GPU's."""
    leader = {index: index for index in handles}
    for one, other in combinations(sorted(handles), 2):
        if leader[one] != leader[other] and _linked(nvml, handles[one], handles[other]):
            low, high = sorted((leader[one], leader[other]))
            leader = {index: low if at == high else at for index, at in leader.items()}
    sizes = {at: list(leader.values()).count(at) for at in leader.values()}
    return {
        index: f"nvlink-{leader[index]}"
        if sizes[leader[index]] > 1
        else _numa(nvml, handle, sys_pci)
        for index, handle in handles.items()
    }


def _linked(nvml: Any, one: Any, other: Any) -> bool:
    try:
        status = nvml.nvmlDeviceGetP2PStatus(one, other, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
    except nvml.NVMLError:
        return False
    return bool(status == nvml.NVML_P2P_STATUS_OK)


def _numa(nvml: Any, handle: Any, sys_pci: Path) -> str:
    try:
        bus_id = nvml.nvmlDeviceGetPciInfo(handle).busId
    except nvml.NVMLError:
        return ""
    text = (bus_id.decode() if isinstance(bus_id, bytes) else str(bus_id)).lower()
    domain, _, rest = text.partition(":")
    try:
        node = int((sys_pci / f"{domain[-4:]}:{rest}" / "numa_node").read_text())
    except (OSError, ValueError):
        return ""
    return f"numa-{node}" if node >= 0 else ""
