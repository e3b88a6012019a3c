"""One slice of an attempt as the bridge knows it: its actor, its copy, how far it has come."""

from __future__ import annotations

import socket
import time
from typing import Any

from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.mirror import Mirror
from runyard.ray_bridge.names import actor_name
from runyard.supervisor import rank_records
from runyard.supervisor.gang_rule import RankEnd
from runyard.supervisor.journal import Record

READ_WAIT_S = 1.0
BLOCKS = 10  # asked for at once of a file that is far behind
RECOVER_S = 90.0
_UNAVAILABLE_PAUSE_S = 0.5
_REFUSED_S = 2.5  # a node whose port is closed so long has no Ray any more
_CONNECT_S = 1.0


class Slice:
    def __init__(self, attempt_id: str, folder: str, plan: dict[str, Any]) -> None:
        self.attempt_id = attempt_id
        self.index = int(plan["index"])
        self.plan = plan
        self.name = actor_name(attempt_id, self.index)
        self.mirror = Mirror(folder, self.index, int(plan.get("log_rank", 0)))
        self.actor: Any = None
        self.facts: dict[str, Any] = {}  # what its actor said of itself
        self.collecting = False
        self.over = False
        self.lost: str = ""  # why it can tell nothing any more
        self.exit: Record | None = None
        self.usage: dict[str, Any] | None = None
        self.ends: list[RankEnd] = []  # by our own clock: those of nodes may differ
        self.started_at: float | None = None
        self._refused_since: float | None = None
        self._behind = ""
        self._blocks: list[Any] = []
        self._read_journal()

    @property
    def processes(self) -> int:
        """How many ends the rule of gangs waits for."""
        return len(self.plan["spec"].get("ranks", ())) or 1

    def read(self) -> Any:
        """One outstanding read: also the way in which the death of its actor is seen."""
        if not self._behind:
            return self.actor.read.remote(self.mirror.offsets, READ_WAIT_S)
        asked = self.actor.read.options(num_returns=1 + BLOCKS)
        answer, *self._blocks = asked.remote(self.mirror.offsets, READ_WAIT_S, BLOCKS)
        return answer

    def take(self, cluster: Cluster, reference: Any, seconds: float) -> list[dict[str, Any]]:
        """What a read brought; the news in it."""
        blocks, self._blocks = self._blocks, []
        behind, self._behind = self._behind, ""
        answer, *more = cluster.get([reference, *blocks], seconds)
        self._refused_since = None
        self.mirror.take(answer["pieces"])
        if behind:
            self.mirror.go_on(answer["behind"], answer["start"], more)
        self._behind = answer.get("behind", "")  # an actor of an earlier version does not say
        if answer["usage"] is not None:
            self.usage = answer["usage"]
        if any(name == "journal" for name, _, _ in answer["pieces"]):
            self._read_journal()
        if answer["over"] and not answer["pieces"]:
            self._close()
        return list(answer["news"])

    def died(self, cluster: Cluster, why: str) -> bool:
        """Its actor is dead. True if another one could be started on the node, to read what is
        left there; else nothing more will be told of the slice."""
        node = str(self.facts.get("node_id", ""))
        if self.collecting or not node or not cluster.node_alive(node):
            self.give_up(why)
            return False
        self.collecting = True
        self.actor = cluster.make_collector(node, self.attempt_id, self.index)
        state = "living"
        while state == "living":  # it has not ended as long as a process of it lives
            recovered = self.actor.recover.remote(cluster.code, cluster.archive)
            state = cluster.get(recovered, RECOVER_S)
        if state == "absent":
            self.give_up(why)
        return state == "ended"

    def unavailable(self, cluster: Cluster, why: str) -> bool:
        """Its actor does not answer, which is not death. True if it may still come back."""
        now = time.monotonic()
        node = str(self.facts.get("node_id", ""))
        row = next((row for row in cluster.nodes() if row["NodeID"] == node), None)
        if row is None or not row["Alive"]:
            self.give_up(why)
            return False
        if _refuses(row["NodeManagerAddress"], int(row["NodeManagerPort"])):
            # Its raylet is dead; with it Ray ends the actor, and with the actor goes the lifeline.
            self._refused_since = self._refused_since or now
            if now - self._refused_since >= _REFUSED_S:
                cluster.gone.add(node)
                self.give_up(why)
                return False
        time.sleep(_UNAVAILABLE_PAUSE_S)
        return True

    def refuse(self, why: str) -> None:
        """Its node could not start it: nothing of it ran there."""
        self.exit = {
            **self._lost_record(),
            "cause": "start_failed",
            "proof": "absent",
            "message": why[:500],
            "path": str(self.facts.get("folder", "")),
        }
        self._close()

    def give_up(self, why: str) -> None:
        self.lost = why[:500]
        self._close()

    def _close(self) -> None:
        self.over = True
        self._read_journal()
        self.exit = self.exit or self.mirror.journal().exit or self._lost_record()
        if len(self.ends) < self.processes:
            self.ends.append(RankEnd(-1, None, None, time.monotonic()))

    def _read_journal(self) -> None:
        written = self.mirror.journal()
        if written.job is not None and self.started_at is None:
            self.started_at = float(written.job["started_at"])
        seen = rank_records.exits(written)
        if not seen and written.main_exit is not None:
            seen = [{"rank": self.index, **written.main_exit}]
        for record in seen[len(self.ends) :]:
            self.ends.append(rank_records.end_of(record)._replace(at=time.monotonic()))

    def _lost_record(self) -> Record:
        """The node is gone with all that was written there and not read yet."""
        written = self.mirror.journal()
        main = written.main_exit or {}
        return {
            "code": main.get("code"),
            "signal": main.get("signal"),
            "cause": "supervisor_lost",
            "by": "bridge",
            "proof": "node_gone",
            "message": self.lost,
            "started_at": self.started_at,
            "ended_at": float(main.get("ended_at", time.time())),
        }


def _refuses(host: str, port: int) -> bool:
    """Whether the machine is there and nobody listens; a machine that says nothing may be only
    cut off."""
    try:
        socket.create_connection((host, port), _CONNECT_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False
