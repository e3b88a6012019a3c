"""Topics of the live socket that tell of events: jobs, one job, alerts. And how topics are named.

Each is given the events of a round, in order, and answers with what its watchers are to be told:
the newest state of whatever they concern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from runyard.api import answers
from runyard.api.live_states import LiveStates, Needed
from runyard.domain import errors, events
from runyard.domain.events import StoredEvent
from runyard.engine.watch.watchers import of_job
from runyard.wire.job_fields import is_job_ref

KINDS = ("jobs", "job", "metrics", "log", "system", "alerts")
_OF_ONE_JOB = frozenset({"job", "metrics", "log"})
_ALERTS = frozenset({events.ALERT_OPENED, events.ALERT_ACKNOWLEDGED, events.ALERT_CLOSED})
_POSITION = re.compile(r"(?P<step>\d{1,18})?(?:@(?P<at>\d{1,12}(?:\.\d{1,9})?))?")
_RANK = re.compile(r"\d{1,6}")
_OFFSET = re.compile(r"(?:(?P<attempt>\d{1,9}):)?(?P<offset>\d{1,18})")


@dataclass(frozen=True, slots=True)
class Asked:
    """A topic as a client named it."""

    kind: str
    ref: str = ""
    offset: int = 0  # of a log
    attempt: int | None = None  # of a log; None: the newest
    step: int | None = None  # of metrics: go on with this step
    at: float | None = None  # of metrics: go on with this time
    rank: int = 0  # of a log

    @property
    def name(self) -> str:
        """As it stands in messages: without the place to begin at."""
        of_rank = f"/{self.rank}" if self.rank else ""
        return f"{self.kind}:{self.ref}{of_rank}" if self.ref else self.kind


def read_topic(text: str) -> Asked:
    """InvalidRequest for what is no topic."""
    kind, _, rest = text.partition(":")
    if kind not in KINDS or (kind in _OF_ONE_JOB) != bool(rest):
        raise _refused(text)
    if not rest:
        return Asked(kind)
    ref, colon, place = rest.partition(":")
    ref, slash, rank = ref.partition("/")
    if not is_job_ref(ref) or (colon and kind == "job"):
        raise _refused(text)
    if slash and (kind != "log" or not _RANK.fullmatch(rank)):
        raise _refused(text)
    of_rank = int(rank) if slash else 0
    if kind == "job" or not place:
        return Asked(kind, ref, rank=of_rank)
    found = (_OFFSET if kind == "log" else _POSITION).fullmatch(place)
    if found is None:
        raise _refused(text)
    if kind == "log":
        number = found["attempt"]
        attempt = int(number) if number else None
        return Asked(kind, ref, int(found["offset"]), attempt, rank=of_rank)
    step, at = found["step"], found["at"]
    return Asked(
        kind, ref, step=int(step) if step else None, at=float(at) if at is not None else None
    )


def _refused(text: str) -> errors.InvalidRequest:
    names = "jobs, job:ID, metrics:ID, log:ID:OFFSET, system, alerts"
    return errors.InvalidRequest(
        f"'{text[:100]}' is no topic; there are {names}.", topic=text[:100]
    )


class EventTopic(Protocol):
    name: str
    watched: str | None  # marked as looked at, for as long as somebody subscribes

    async def tell(
        self, told: Sequence[StoredEvent], touched: Mapping[int, int]
    ) -> list[Any] | None:
        """What to send after these events, and after something was recorded of these jobs (job ->
        count); None for nothing."""
        ...


class JobsTopic:
    """One row for each job that changed, newest state; and what concerns the whole queue."""

    def __init__(self, states: LiveStates) -> None:
        self.name = "jobs"
        self.watched: str | None = "jobs"
        self._states = states

    async def tell(
        self, told: Sequence[StoredEvent], touched: Mapping[int, int]
    ) -> list[Any] | None:
        needed = {job_id: Needed(touches=count) for job_id, count in touched.items()}
        others: list[Any] = []
        for one in told:
            if one.job_id is not None:
                needed[one.job_id] = Needed(one.id, touched.get(one.job_id, 0))
            elif one.event.code == events.JOB_DELETED:
                others.append({"type": "deleted", "job_id": one.event.params.get("job")})
            elif one.event.code not in _ALERTS:
                others.append({"type": "event", **answers.event(one)})
        return [*await self._states.rows(needed), *others] or None


class JobTopic:
    """Every event of one job, and its newest state."""

    def __init__(self, states: LiveStates, name: str, ref: str, job_id: int) -> None:
        self.name = name
        self.watched: str | None = of_job(job_id)
        self._ref = ref
        self._job_id = job_id
        self._states = states

    async def tell(
        self, told: Sequence[StoredEvent], touched: Mapping[int, int]
    ) -> list[Any] | None:
        own = [one for one in told if one.job_id == self._job_id]
        if any(self._is_deletion(one) for one in told):
            return [{"type": "deleted", "job_id": self._ref}]
        count = touched.get(self._job_id, 0)
        if not own and not count:
            return None
        needed = Needed(own[-1].id if own else 0, count)
        try:
            state = await self._states.job(self._ref, needed)
        except errors.JobNotFound:
            return None  # its deletion is told by the next events
        return [*({"type": "event", **answers.event(one)} for one in own), state]

    def _is_deletion(self, one: StoredEvent) -> bool:
        return one.event.code == events.JOB_DELETED and one.event.params.get("job") == self._ref


class AlertsTopic:
    """Alerts that were opened, acknowledged or closed, as they are now."""

    def __init__(self, states: LiveStates) -> None:
        self.name = "alerts"
        self.watched: str | None = None
        self._states = states

    async def tell(
        self,
        told: Sequence[StoredEvent],
        touched: Mapping[int, int],  # noqa: ARG002
    ) -> list[Any] | None:
        found = [one.event.params.get("alert") for one in told if one.event.code in _ALERTS]
        ids = [number for number in dict.fromkeys(found) if isinstance(number, int)]
        return await self._states.alerts(ids) or None if ids else None
