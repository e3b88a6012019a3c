"""What the bridge does for the server: attempts run and watched, the cluster looked at."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from runyard.ray_bridge import adopting, strays
from runyard.ray_bridge.attempt_watch import AttemptWatch
from runyard.ray_bridge.cluster import REFUSED, Cluster
from runyard.ray_bridge.deadlines import Late
from runyard.ray_bridge.nodes import Nodes
from runyard.ray_bridge.talk import Line, Talk
from runyard.supervisor import protocol

SWEEP_S = 5.0
_FIRST_SWEEPS_S = 0.5  # until every node has told of itself


class Bridge:
    def __init__(self, data_dir: str, cluster: Cluster, address: str, talk: Talk) -> None:
        self._data_dir = data_dir
        self._talk = talk
        self._cluster = cluster
        self._nodes = Nodes(self._cluster)
        self._lock = threading.Lock()
        self._watches: dict[str, AttemptWatch] = {}
        self._cluster.warm.open()
        self._cluster.gone.heard = self._forget_gone
        self._nodes.refresh()
        self._tell_cluster()
        talk.tell("joined", address=address, cluster=self._cluster.cluster_id())

    # what the server says

    def obey(self, line: Line) -> None:
        attempt_id = str(line.get("attempt_id", ""))
        if attempt_id and not protocol.valid_attempt_id(attempt_id):
            raise ValueError(f"not an attempt id: {attempt_id!r}")
        match line.get("do"):
            case "run":
                self._watch(attempt_id)
            case "stop":
                self._stop(attempt_id)
            case "find":
                threading.Thread(target=self._find, args=(line,), daemon=True).start()
            case "refuse":
                threading.Thread(target=self._refuse, args=(line,), daemon=True).start()
            case "sweep":
                threading.Thread(target=self._sweep_strays, args=(line,), daemon=True).start()
            case "sweep_slices":
                threading.Thread(target=self._sweep_slices, args=(line,), daemon=True).start()
            case "stacks":
                threading.Thread(target=self._stacks, args=(line,), daemon=True).start()
            case unknown:
                raise ValueError(f"unknown request {unknown!r}")

    def _watch(self, attempt_id: str) -> None:
        """The same again changes nothing."""
        with self._lock:
            if attempt_id in self._watches:
                return
            watch = AttemptWatch(
                self._cluster,
                protocol.attempt_folder(self._data_dir, attempt_id),
                attempt_id,
                self._talk.tell,
                lambda: self._nodes.ids,
            )
            self._watches[attempt_id] = watch
        name = f"attempt {attempt_id}"
        threading.Thread(
            target=self._run, args=(attempt_id, watch), name=name, daemon=True
        ).start()

    def _run(self, attempt_id: str, watch: AttemptWatch) -> None:
        try:
            watch.run()
        except Exception as error:
            # Nothing is concluded from our own mistake: the server has it looked at again.
            traceback.print_exc()
            time.sleep(SWEEP_S)
            self._talk.tell("dropped", attempt_id=attempt_id, why=str(error)[:500])
        finally:
            with self._lock:
                self._watches.pop(attempt_id, None)

    def _stop(self, attempt_id: str) -> None:
        with self._lock:
            watch = self._watches.get(attempt_id)
        if watch is not None:
            watch.look_for_stop()

    def _find(self, line: Line) -> None:
        """Which of these attempts, of which the server has nothing, have their actors in the
        cluster. They are watched from now on."""
        asked = set(line["attempt_ids"])
        try:
            present = strays.present(self._cluster) & asked
            found = [one for one in present if adopting.adopt(self._cluster, self._data_dir, one)]
        except Exception as error:
            self._talk.answer(line, error=str(error))
            return
        for attempt_id in found:
            self._watch(attempt_id)
        self._talk.answer(line, found=sorted(found))

    def _refuse(self, line: Line) -> None:
        """Make sure that no server starts the attempt any more; one that claimed it and has made
        nothing since asks again before it starts anything of the user's."""
        attempt_id = str(line["attempt_id"])
        try:
            held = self._cluster.claim(attempt_id, REFUSED)
            if held != REFUSED and attempt_id not in strays.present(self._cluster):
                self._cluster.revoke(attempt_id)
                held = REFUSED
            self._talk.answer(line, refused=held == REFUSED)
        except Late as error:
            self._talk.answer(line, error=str(error))

    def _sweep_strays(self, line: Line) -> None:
        """End what is in the cluster of these attempts, which have ended by our records."""
        try:
            with self._lock:
                watched = set(self._watches)
            ended = strays.end(self._cluster, set(line["attempt_ids"]) - watched)
            self._talk.answer(line, ended=sorted(ended))
        except Late as error:
            self._talk.answer(line, error=str(error))

    def _sweep_slices(self, line: Line) -> None:
        self._answer_for(line, lambda watch: watch.sweep())

    def _stacks(self, line: Line) -> None:
        seconds = float(line["seconds"])
        self._answer_for(line, lambda watch: {"stacks": watch.stacks(seconds)})

    def _answer_for(self, line: Line, ask: Callable[[AttemptWatch], dict[str, Any]]) -> None:
        """With what the watch over an attempt says."""
        with self._lock:
            watch = self._watches.get(str(line["attempt_id"]))
        if watch is None or not watch.launched:
            self._talk.answer(line, error="it is not watched now")
            return
        try:
            self._talk.answer(line, **ask(watch))
        except Exception as error:
            self._talk.answer(line, error=str(error))

    # what it looks at by itself

    def sweep_for_ever(self) -> None:
        while True:
            time.sleep(SWEEP_S if self._nodes.all_known() else _FIRST_SWEEPS_S)
            try:
                self._nodes.refresh()
            except Late:
                pass
            except Exception:
                traceback.print_exc()
            self._tell_cluster()

    def _forget_gone(self) -> None:
        """Before the end of an attempt there is told, which may be tried again at once."""
        self._nodes.leave_out_gone()
        self._tell_cluster()

    def _tell_cluster(self) -> None:
        with self._lock:
            watches = dict(self._watches)
        self._talk.tell(
            "cluster",
            pid=os.getpid(),
            unreachable_since=self._cluster.deadlines.unreachable_since,
            nodes=self._nodes.rows,
            usage={
                attempt_id: use for attempt_id, watch in watches.items() if (use := _use(watch))
            },
        )


def _use(watch: AttemptWatch) -> dict[str, Any] | None:
    rows = watch.usage()
    if not rows:
        return None
    return {
        "at": max(row["at"] for row in rows),
        "cpu_s": sum(row["cpu_s"] for row in rows),
        "rss_mb": sum(row["rss_mb"] for row in rows),
        "pids": [(row["boot_id"], pid) for row in rows for pid in row["pids"]],
    }
