"""Alert rules of people: kept, changed, and tried on history before they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.domain import errors, states
from runyard.domain.job import Job
from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.rules import rule as rules
from runyard.domain.monitoring.rules.grammar import Expression, parse
from runyard.domain.monitoring.rules.preview import Firing, preview
from runyard.domain.monitoring.rules.rule import Action, NewRule, Rule
from runyard.domain.monitoring.rules.tokens import RuleError, seconds
from runyard.domain.monitoring.series import Sample
from runyard.engine.access.actor import Actor
from runyard.engine.commands import find
from runyard.engine.parts import Parts
from runyard.stores.base import JobFilter, Reader, Transaction
from runyard.stores.base_metrics import MetricRange

MOST_RULES = 500
MOST_JOBS = 20  # that one preview looks at
MOST_POINTS = 1000


@dataclass(frozen=True, slots=True)
class Preview:
    expression: str
    for_s: float
    firings: tuple[tuple[str, Firing], ...]  # with the job's public id
    jobs: tuple[str, ...]  # those that were looked at
    unknown: tuple[str, ...]  # names of which none of them has any history


@dataclass(frozen=True, slots=True)
class Wish:
    """A rule as a person wrote it; None leaves what it was, or takes the default."""

    name: str | None = None
    expression: str | None = None
    length: str | float | None = None
    level: str | None = None
    actions: Sequence[str] | None = None
    enabled: bool | None = None


class RuleDesk:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def all(self) -> list[Rule]:
        with self._parts.store.read() as reader:
            return reader.rules()

    def get(self, ref: str) -> Rule:
        with self._parts.store.read() as reader:
            return _find(reader, ref)

    def create(self, wish: Wish, actor: Actor) -> Rule:
        """InvalidRequest says what is wrong with it; Conflict when the name is taken."""
        actor.must_submit()
        made = _checked(wish, None)
        now = self._parts.clock()

        def work(tx: Transaction) -> Rule:
            _must_be_free(tx, made.name, None)
            if len(tx.rules()) >= MOST_RULES:
                raise errors.Conflict(f"There are {MOST_RULES} rules already.")
            return tx.insert_rule(made, actor.name, now)

        return self._parts.store.write(work, exclusive=self._parts.store.shared)

    def change(self, ref: str, wish: Wish, actor: Actor) -> Rule:
        """What is not given stays."""

        def work(tx: Transaction) -> Rule:
            known = _find(tx, ref)
            _must_own(known, actor)
            made = _checked(wish, known)
            _must_be_free(tx, made.name, known)
            tx.update_rule(known.id, made)
            return _find(tx, made.name)

        return self._parts.store.write(work, exclusive=self._parts.store.shared)

    def delete(self, ref: str, actor: Actor) -> None:
        def work(tx: Transaction) -> None:
            known = _find(tx, ref)
            _must_own(known, actor)
            tx.delete_rule(known.id)

        self._parts.store.write(work)

    def preview(
        self,
        expression: str,
        length: str | float | None,
        job: str | None,
        since: float | None,
    ) -> Preview:
        """On the history of one job, or of the newest jobs that ran since then."""
        try:
            parsed = parse(expression)
            for_s = parsed.for_s if length is None else seconds(str(length))
        except RuleError as error:
            raise _refused("expression", error) from error
        firings: list[tuple[str, Firing]] = []
        unknown, looked_at = set(parsed.names), []
        with self._parts.store.read() as reader:
            for found in self._jobs(reader, job, since):
                history = self._history(reader, found, parsed, since)
                unknown -= {name for name, samples in history.items() if samples}
                looked_at.append(found.ref)
                fired = preview(expression, for_s, history, _words(found))
                firings += [(found.ref, firing) for firing in fired]
        return Preview(expression, for_s, tuple(firings), tuple(looked_at), tuple(sorted(unknown)))

    def _jobs(self, reader: Reader, job: str | None, since: float | None) -> Iterator[Job]:
        if job is not None:
            yield find(reader, job)
            return
        page = reader.jobs(JobFilter(), limit=200)
        ran = [one for one in page.jobs if one.started_at is not None]
        recent = [one for one in ran if since is None or _last_seen(one) >= since]
        yield from recent[:MOST_JOBS]

    def _history(
        self, reader: Reader, job: Job, parsed: Expression, since: float | None
    ) -> dict[str, Sequence[Sample]]:
        chosen = MetricRange(since=since)
        found: dict[str, Sequence[Sample]] = {}
        attempts = reader.attempts(job.id)
        node = attempts[-1].node_id if attempts else self._parts.node_id
        ran = MetricRange(since=max(since or 0.0, job.started_at or 0.0), until=job.completed_at)
        for name in parsed.names:
            if name.startswith(rules.NODE_PREFIX):
                found[name] = reader.node_series(node, name, MOST_POINTS, ran).samples
            else:
                found[name] = reader.metric_series(job.id, name, MOST_POINTS, chosen).samples
        return found


def _last_seen(job: Job) -> float:
    return float("inf") if job.completed_at is None else job.completed_at


def _words(job: Job) -> dict[str, str]:
    """As they were while there was something to measure."""
    running = states.JobStatus.RUNNING.value
    stage = states.Stage.RUNNING.value
    return {"status": running, "stage": stage, "owner": job.owner, "name": job.spec.name}


def _checked(wish: Wish, known: Rule | None) -> NewRule:
    expression, length = wish.expression, wish.length
    if known is not None and expression is None:
        expression = known.expression
        length = known.for_s if length is None else length
        if parse(expression).for_s:
            length = wish.length
    if wish.name is None and known is None:
        raise _refused("name", RuleError("is needed"))
    if expression is None:
        raise _refused("expression", RuleError("is needed"))
    level = wish.level or (known.level if known else AlertLevel.WARNING)
    actions = wish.actions if wish.actions is not None else (known.actions if known else ())
    enabled = wish.enabled if wish.enabled is not None else (known.enabled if known else True)
    name = wish.name if wish.name is not None else (known.name if known else "")
    try:
        chosen = tuple(dict.fromkeys(Action(action) for action in actions))
        return rules.check(name, expression, length, AlertLevel(level), chosen, enabled)
    except RuleError as error:
        about_name = error.place is None and "name" in error.why
        raise _refused("name" if about_name else "expression", error) from error


def _refused(field: str, error: RuleError) -> errors.InvalidRequest:
    told: dict[str, Any] = {"field": field, "code": "bad_rule", "message": str(error)}
    if error.place is not None:
        told["place"] = error.place
    return errors.InvalidRequest(f"The rule is not valid. {field}: {error}.", fields=[told])


def _find(reader: Reader, ref: str) -> Rule:
    number = int(ref) if ref.isascii() and ref.isdigit() and len(ref) < 19 else None
    found = reader.rule(ref if number is None else number)
    if found is None:
        raise errors.NotFound(f"There is no rule {ref[:100]}.", rule=ref[:100])
    return found


def _must_be_free(reader: Reader, name: str, known: Rule | None) -> None:
    other = reader.rule(name)
    if other is not None and (known is None or other.id != known.id):
        raise errors.Conflict(f"There is a rule {name} already.", rule=name)


def _must_own(rule: Rule, actor: Actor) -> None:
    if actor.role == "viewer" or (actor.role != "admin" and rule.created_by != actor.name):
        raise errors.Forbidden(name=actor.name, role=actor.role)
