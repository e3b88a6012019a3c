"""Nodes whose Ray was found dead, often before the cluster calls them dead (about 15 s), and
always before the next look at all nodes.

Nothing is started there meanwhile. None of them comes back: a Ray that is started again there is
a node with another id.
"""

from __future__ import annotations

from collections.abc import Callable


class GoneNodes:
    def __init__(self) -> None:
        self._ids: set[str] = set()
        self.heard: Callable[[], None] = lambda: None  # of one more

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._ids

    def add(self, node_id: str) -> None:
        if node_id not in self._ids:
            self._ids.add(node_id)
            self.heard()
