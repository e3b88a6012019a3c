"""One attempt in the cluster, from its start or re-attachment to its end record.

The journal in the attempt's folder is what survives the bridge: `spec` (by the server), `begun`
before anything exists in the cluster, `placed` before anything of the user's runs, `exit`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from runyard.ray_bridge import (
    gang_end,
    gpu_proof,
    port_check,
    releasing,
    slice_stacks,
    slice_sweeps,
    starting,
)
from runyard.ray_bridge.cluster import BEGUN, REFUSED, Cluster
from runyard.ray_bridge.deadlines import Late
from runyard.ray_bridge.slices import Slice, State
from runyard.ray_bridge.starting import NotStarted
from runyard.ray_bridge.stops import Stops
from runyard.supervisor import gang_rule, journal, stop_request
from runyard.supervisor.journal import Journal, Record

Tell = Callable[..., None]
NodeIds = Callable[[], Mapping[str, str]]
_LOOK_S = 0.25
_CLEAR_S = 5.0
_ATTACH_S = 20.0
_AGAIN_S = 2.0
_FORWARDED = ("stopping", "finishing", "stuck")


class AttemptWatch:
    def __init__(
        self, cluster: Cluster, folder: str, attempt_id: str, tell: Tell, node_ids: NodeIds
    ) -> None:
        self._cluster = cluster
        self._folder = folder
        self._attempt_id = attempt_id
        self._tell = tell
        self._node_ids = node_ids
        self._slices: list[Slice] = []
        self._stops = Stops(cluster, ())
        self._spec: Record = {}
        self._lock = threading.Lock()
        self._stop_seq = 0
        self._gang_stop = ""
        self._told_started = False
        self.launched = False

    def run(self) -> None:
        """In a thread of its own; returns when the end is recorded and told."""
        written = self._journal()
        if written.spec is None or written.exit is not None:
            return
        self._spec = written.spec
        self._slices = [
            Slice(self._attempt_id, self._folder, plan) for plan in self._spec["slices"]
        ]
        self._stops = Stops(self._cluster, self._slices, _services_s(self._spec))
        try:
            if written.first("begun") is None:
                with self._cluster.warm.starting():
                    self._begin()
            else:
                self._attach(written)
            self._follow()
            end = gang_end.merged(self._slices, self._gang_stop)
            gpus = gpu_proof.gather(self._cluster, self._slices, self._tell_gpus_held)
            end |= {"gpus": gpus} if gpus else {}
        except NotStarted as refusal:
            end = self._unstarted(refusal)
        self._release()
        self._record(end)

    def look_for_stop(self, *, again: bool = False) -> None:
        """Pass on a request that is in the folder, to every slice that can still hear it."""
        request = stop_request.read(self._folder)
        with self._lock:
            if request is None or not self.launched:
                return
            if request["seq"] <= self._stop_seq and not again:
                return
            self._stop_seq = request["seq"]
        self._stops.send(_numbered(request))

    def usage(self) -> list[dict[str, Any]]:
        return [one.usage for one in self._slices if one.usage is not None and not one.over]

    def stacks(self, seconds: float) -> list[dict[str, Any]]:
        """Where the processes of every slice are now; of one that does not answer nothing."""
        reachable = [one for one in self._slices if one.can_hear]
        return slice_stacks.gather(self._cluster, reachable, seconds)

    def sweep(self) -> dict[str, Any]:
        """Kill what lives of it on its nodes, if its end was asked for."""
        self.look_for_stop(again=True)
        request = stop_request.read(self._folder)
        left = [one for one in self._slices if not one.over] if request is not None else []
        return slice_sweeps.sweep(self._cluster, left, _numbered(request or {"seq": 0}))

    # the start

    def _begin(self) -> None:
        journal.append(self._folder, "begun", {}, once=True)
        if self._told_to_stop():
            raise NotStarted("begin", "it was asked to stop")
        try:
            self._check_claim(self._cluster.claim(self._attempt_id, BEGUN))
            starting.place(
                self._cluster, self._spec, self._slices, self._node_ids(), self._told_to_stop
            )
            self._check_claim(self._cluster.claimed(self._attempt_id))
            port_check.check(self._cluster, self._slices)
        except Late as error:
            raise NotStarted("cluster", str(error)) from error
        placed = [{"index": one.index, **one.facts} for one in self._slices]
        journal.append(self._folder, "placed", {"slices": placed}, once=True)
        self._tell("placed", attempt_id=self._attempt_id, slices=placed)
        self._launch()

    def _check_claim(self, word: str) -> None:
        if word == REFUSED:
            raise NotStarted("claim", "another server has taken its job over")

    def _launch(self) -> None:
        starting.launch(self._cluster, self._spec, self._slices)
        self.launched = True
        self.look_for_stop()

    def _told_to_stop(self) -> bool:
        return stop_request.read(self._folder) is not None

    def _attach(self, written: Journal) -> None:
        """Find again what an earlier bridge started. Before `placed` nothing of the user's can
        have run, so that it may simply begin anew another time."""
        placed = written.first("placed")
        if placed is None:
            raise NotStarted("attach", "the bridge was lost while it was being placed")
        facts = {row["index"]: row for row in placed["slices"]}
        for one in self._slices:
            one.facts = dict(facts[one.index])
            one.actor = self._patiently(partial(self._cluster.actor, one.name))
            if one.actor is None:
                self._lost(one, "its actor is gone")
        living = [one for one in self._slices if one.can_hear]
        if living:
            starting.launch(self._cluster, self._spec, living)
        self.launched = True
        self.look_for_stop()

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """The cluster may be away for a while: nothing is concluded from that."""
        import ray

        while True:
            try:
                return ask()
            except (Late, ray.exceptions.GetTimeoutError):
                time.sleep(_AGAIN_S)

    # the life

    def _follow(self) -> None:
        import ray

        pending = {one.read(): one for one in self._slices if not one.over}
        while pending:
            ready, _ = ray.wait(list(pending), num_returns=1, timeout=_LOOK_S)
            for reference in ready:
                one = pending.pop(reference)
                self._take(one, reference)
                if not one.over:
                    pending[one.read()] = one
            self._tell_started()
            self._apply_gang_rule()
            self._stops.look()

    def _take(self, one: Slice, reference: Any) -> None:
        import ray

        try:
            news = one.take(self._cluster, reference, _ATTACH_S)
        except (ray.exceptions.ActorUnavailableError, ray.exceptions.GetTimeoutError) as error:
            why = str(error)
            self._patiently(lambda: one.unavailable(self._cluster, why))
        except ray.exceptions.RayError as error:
            self._lost(one, str(error))
        else:
            for told in news:
                self._pass_on(one, told)

    def _lost(self, one: Slice, why: str) -> None:
        import ray

        try:
            self._patiently(lambda: one.died(self._cluster, why))
        except ray.exceptions.RayError as error:
            one.give_up(f"{why}; {error}")

    def _pass_on(self, one: Slice, news: dict[str, Any]) -> None:
        kind = str(news.get("kind", ""))
        if kind in _FORWARDED or (kind.startswith("service_") and one.index == 0):
            self._tell("news", news=news)

    def _tell_started(self) -> None:
        if self._told_started or any(one.started_at is None for one in self._slices):
            return
        self._told_started = True
        at = max(one.started_at or 0.0 for one in self._slices)
        news = {"kind": "started", "attempt_id": self._attempt_id, "at": at, "started_at": at}
        self._tell("news", news=news)

    def _apply_gang_rule(self) -> None:
        """Across the slices; each supervisor looks after the ranks of its own."""
        if len(self._slices) == 1 or self._gang_stop:
            return
        verdict = gang_rule.decide(
            [end for one in self._slices for end in one.ends],
            sum(one.processes for one in self._slices),
            time.monotonic(),
            float(self._spec["gang_grace_s"]),
            float(self._spec["finish_skew_s"]),
        )
        if verdict.cause:
            self._gang_stop = verdict.cause
            self._stops.send(
                {
                    "seq": 2 * self._stop_seq + 1,
                    "cause": verdict.cause,
                    "grace_s": float(self._spec["leftover_grace_s"]),
                    "requested_by": "bridge",
                    "requested_at": time.time(),
                }
            )

    # the end

    def _release(self) -> None:
        import ray

        clearing = [
            (one, one.teller.clear.remote())
            for one in self._slices
            if one.teller is not None and one.state is not State.LOST
        ]
        for one, reference in clearing:
            try:
                self._cluster.get(reference, _CLEAR_S)
                if one.collector is not None:
                    self._cluster.kill(one.collector)
            except (ray.exceptions.RayError, Late, ValueError):
                continue  # the folder is removed by a later actor there
        names = [one.name for one in self._slices]
        releasing.release(self._cluster, self._attempt_id, names, self._tell_stuck)
        self._cluster.warm.left(str(one.facts.get("node_id", "")) for one in self._slices)

    def _tell_gpus_held(self, gpus: list[dict[str, Any]], waited_s: float) -> None:
        news = {"kind": "gpus_held", "attempt_id": self._attempt_id, "gpus": gpus}
        self._tell("news", news={**news, "waited_s": waited_s})

    def _tell_stuck(self, left: str) -> None:
        held = {"pid": None, "comm": left, "state": "Ray", "wchan": "placement group, actors"}
        news = {"kind": "stuck", "attempt_id": self._attempt_id, "processes": [held]}
        self._tell("news", news=news)

    def _record(self, end: Record) -> None:
        journal.append(self._folder, "exit", end, once=True, sync=True)
        written = self._journal().exit
        news = {"kind": "ended", "attempt_id": self._attempt_id, "at": time.time()}
        self._tell("news", news={**news, "exit": written})

    def _unstarted(self, refusal: NotStarted) -> Record:
        asked = stop_request.read(self._folder)
        return {
            "code": None,
            "signal": None,
            "cause": "cancelled_before_start" if asked else "never_started",
            "by": "bridge",
            "proof": "absent",
            "started_at": None,
            "ended_at": time.time(),
            "stop": asked,
            **refusal.detail,
            **({"cause": refusal.cause} if refusal.cause and not asked else {}),
        }

    def _journal(self) -> Journal:
        try:
            return journal.read(self._folder)
        except FileNotFoundError:
            return Journal()


def _numbered(request: stop_request.Request) -> stop_request.Request:
    """As slices hear it: between two numbers of the server there is room for one of ours."""
    return {**request, "seq": 2 * request["seq"]}


def _services_s(spec: Record) -> float:
    """What is left of main has its grace, and then services have theirs."""
    has_services = any(part["spec"].get("services") for part in spec["slices"])
    return 2 * float(spec["leftover_grace_s"]) if has_services else 0.0
