"""One slice of an attempt as the bridge knows it: its actor, its copy, how far it has come."""

from __future__ import annotations

import socket
import time
from enum import Enum, auto
from typing import Any

from runyard.ray_bridge.cluster import Cluster
from runyard.ray_bridge.mirror import Mirror
from runyard.ray_bridge.names import actor_name
from runyard.supervisor import rank_records
from runyard.supervisor.gang_rule import RankEnd
from runyard.supervisor.journal import Record

READ_WAIT_S = 1.0
BLOCKS = 10  # asked for at once of a file that is far behind
RECOVER_S = 30.0
_UNAVAILABLE_PAUSE_S = 0.5
_REFUSED_S = 2.5  # a node whose port is closed so long has no Ray any more
_CONNECT_S = 1.0
_MOST_COLLECTORS = 3


class State(Enum):
    WATCHED = auto()  # its own actor tells of it
    COLLECTED = auto()  # that one is dead: another reads what it left, and sees that it ends
    ENDED = auto()  # it has ended, and everything of it was read
    REFUSED = auto()  # its node could not start it: nothing of it ran
    LOST = auto()  # nothing more can be told of it


_OVER = frozenset({State.ENDED, State.REFUSED, State.LOST})


class Slice:
    def __init__(self, attempt_id: str, folder: str, plan: dict[str, Any]) -> None:
        self.attempt_id = attempt_id
        self.index = int(plan["index"])
        self.plan = plan
        self.name = actor_name(attempt_id, self.index)
        self.mirror = Mirror(folder, self.index, int(plan.get("log_rank", 0)))
        self.actor: Any = None
        self.collector: Any = None  # in place of an actor that died
        self.facts: dict[str, Any] = {}  # what its actor said of itself
        self.state = State.WATCHED
        self.exit: Record | None = None
        self.has_exit_record = False
        self.moved_at = time.monotonic()  # when it last told anything
        self.usage: dict[str, Any] | None = None
        self.ends: list[RankEnd] = []  # by our own clock: those of nodes may differ
        self.started_at: float | None = None
        self._refused_since: float | None = None
        self._collectors = 0
        self._stuck: Record | None = None
        self._behind = ""
        self._blocks: list[Any] = []
        self._read_journal()

    @property
    def over(self) -> bool:
        return self.state in _OVER

    @property
    def teller(self) -> Any:
        """The actor that tells of it now."""
        return self.collector or self.actor

    @property
    def can_hear(self) -> bool:
        """Whether its own actor may still take a word."""
        return self.state is State.WATCHED and self.actor is not None

    @property
    def processes(self) -> int:
        """How many ends the rule of gangs waits for."""
        return len(self.plan["spec"].get("ranks", ())) or 1

    def read(self) -> Any:
        """One outstanding read: also the way in which the death of its actor is seen."""
        if not self._behind:
            return self.teller.read.remote(self.mirror.offsets, READ_WAIT_S)
        asked = self.teller.read.options(num_returns=1 + BLOCKS)
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
        news = list(answer["news"])
        if answer["pieces"]:
            self.moved_at = time.monotonic()
        if any(name == "journal" for name, _, _ in answer["pieces"]):
            self._read_journal()
            news += self._stuck_news()
        if answer["over"] and not answer["pieces"]:
            self._close(State.ENDED)
        return news

    def died(self, cluster: Cluster, why: str) -> None:
        """The actor that told of it is dead. Another one on its node sees that what is left there
        ends, and tells of it meanwhile; without one nothing more will be told."""
        node = str(self.facts.get("node_id", ""))
        if not node or self._collectors >= _MOST_COLLECTORS:
            self.give_up(why)
            return
        if not cluster.node_alive(node):
            self._lose_node(cluster, node, why)
            return
        self.collector = cluster.make_collector(node, self.attempt_id, self.index)
        self._collectors += 1
        self.state = State.COLLECTED
        self._behind, self._blocks = "", []
        recovering = self.collector.recover.remote(cluster.code, cluster.archive)
        if not cluster.get(recovering, RECOVER_S):
            self.give_up(why)

    def unavailable(self, cluster: Cluster, why: str) -> bool:
        """Its actor does not answer, which is not death. True if it may still come back."""
        now = time.monotonic()
        node = str(self.facts.get("node_id", ""))
        row = next((row for row in cluster.nodes() if row["NodeID"] == node), None)
        if row is None or not row["Alive"]:
            self._lose_node(cluster, node, why)
            return False
        if _refuses(row["NodeManagerAddress"], int(row["NodeManagerPort"])):
            # Its raylet is dead; with it Ray ends the actor, and with the actor goes the lifeline.
            self._refused_since = self._refused_since or now
            if now - self._refused_since >= _REFUSED_S:
                self._lose_node(cluster, node, why)
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
        self._close(State.REFUSED)

    def _lose_node(self, cluster: Cluster, node: str, why: str) -> None:
        """Before its end is told: what is tried again at once must not go there."""
        cluster.gone.add(node)
        self.give_up(why)

    def give_up(self, why: str) -> None:
        self._close(State.LOST, why[:500])

    def _close(self, state: State, why: str = "") -> None:
        self.state = state
        self._read_journal()
        self.exit = self.exit or self.mirror.journal().exit or self._lost_record(why)
        if len(self.ends) < self.processes:
            self.ends.append(RankEnd(-1, None, None, time.monotonic()))

    def _read_journal(self) -> None:
        written = self.mirror.journal()
        self.has_exit_record = written.exit is not None
        if written.job is not None and self.started_at is None:
            self.started_at = float(written.job["started_at"])
        seen = rank_records.exits(written)
        if not seen and written.main_exit is not None:
            seen = [{"rank": self.index, **written.main_exit}]
        for record in seen[len(self.ends) :]:
            self.ends.append(rank_records.end_of(record)._replace(at=time.monotonic()))

    def _stuck_news(self) -> list[dict[str, Any]]:
        """What cannot be killed there, when the journal tells of it anew."""
        before, self._stuck = self._stuck, self.mirror.journal().stuck
        if self._stuck is None or self._stuck == before:
            return []
        processes = self._stuck["processes"]
        return [{"kind": "stuck", "attempt_id": self.attempt_id, "processes": processes}]

    def _lost_record(self, why: str = "") -> Record:
        """The node is gone with all that was written there and not read yet."""
        written = self.mirror.journal()
        main = written.main_exit or {}
        return {
            "code": main.get("code"),
            "signal": main.get("signal"),
            "cause": "supervisor_lost",
            "by": "bridge",
            "proof": "node_gone",
            "message": why,
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
