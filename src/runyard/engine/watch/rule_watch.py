"""People's rules, evaluated for running jobs and machines; what fires, and with which values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring.alert import NewAlert
from runyard.domain.monitoring.finding import excerpt, plain
from runyard.domain.monitoring.rules import rule as rules
from runyard.domain.monitoring.rules.evaluate import Holds, compile_expression
from runyard.domain.monitoring.rules.grammar import Expression, parse
from runyard.domain.monitoring.rules.preview import Hold
from runyard.domain.monitoring.rules.rule import Rule
from runyard.domain.monitoring.series import Sample
from runyard.engine import server_log
from runyard.engine.watch.board import Board


@dataclass(frozen=True, slots=True)
class Compiled:
    rule: Rule
    parsed: Expression
    holds: Holds


class JobFacts:
    """What is known of a running job, and of the machine it runs on."""

    def __init__(self, board: Board, job: Job, attempt: Attempt, now: float) -> None:
        self.now = now
        self._board, self._job, self._attempt = board, job, attempt
        self._latest = board.latest(job.id)
        self._progress = board.progress(job.id)

    def latest(self, name: str) -> Sample | None:
        if name.startswith(rules.NODE_PREFIX):
            return self._board.node_latest(self._attempt.node_id).get(name)
        return self._latest.get(name) or self._told(name)

    def window(self, name: str, since: float) -> Sequence[Sample]:
        if name.startswith(rules.NODE_PREFIX):
            return self._board.node_window(self._attempt.node_id, name, since)
        return self._board.window(self._job.id, name, since)

    def words(self, name: str) -> str | None:
        stage = self._job.stage.value if self._job.stage else None
        phase = self._progress.phase if self._progress else None
        known = {"stage": stage, "phase": phase, "status": self._job.status.value}
        return {**known, "owner": self._job.owner, "name": self._job.spec.name}.get(name)

    def _told(self, name: str) -> Sample | None:
        """Step, epoch and progress (percent), where they are no metrics of their own."""
        it = self._progress
        if it is None:
            return None
        percent = None if it.fraction is None else 100 * it.fraction
        value = {"step": it.step, "epoch": it.epoch, "progress": percent}.get(name)
        return None if value is None else Sample(name, it.step_at or it.at, float(value), it.step)


class NodeFacts:
    def __init__(self, board: Board, node_id: str, now: float) -> None:
        self.now = now
        self._board, self._node_id = board, node_id
        self._latest = board.node_latest(node_id)

    def latest(self, name: str) -> Sample | None:
        return self._latest.get(name)

    def window(self, name: str, since: float) -> Sequence[Sample]:
        return self._board.node_window(self._node_id, name, since)

    def words(self, name: str) -> str | None:  # noqa: ARG002
        return None


Facts = JobFacts | NodeFacts


class RuleWatch:
    """Compiles each rule once; remembers since when each has held for each subject."""

    def __init__(self, tell_broken: Callable[[Rule, str | None], None]) -> None:
        self._tell_broken = tell_broken
        self._compiled: dict[str, Compiled | None] = {}
        self._held: dict[tuple[int, str, str], Hold] = {}

    def usable(self, known: Sequence[Rule]) -> list[Compiled]:
        """Those that are enabled and can be evaluated; of the others people are told why."""
        texts = {rule.expression for rule in known}
        self._compiled = {text: one for text, one in self._compiled.items() if text in texts}
        found = []
        for rule in known:
            compiled = self._compile(rule) if rule.enabled else None
            if compiled is not None:
                found.append(compiled)
        return found

    def fires(self, one: Compiled, subject: str, facts: Facts, now: float) -> bool:
        """Whether it has held for as long as it says; `now` is of a monotonic clock."""
        try:
            holds = one.holds(facts)
        except Exception as error:  # cannot be; if it can, one rule is broken and not the watch
            self._break(one.rule, f"{type(error).__name__}: {error}")
            return False
        key = (one.rule.id, f"{one.rule.expression} for {one.rule.for_s}", subject)
        return self._held.setdefault(key, Hold()).note(holds, now, one.rule.for_s)

    def forget(self, living: set[str]) -> None:
        self._held = {key: hold for key, hold in self._held.items() if key[2] in living}

    def _compile(self, rule: Rule) -> Compiled | None:
        text = rule.expression
        if text not in self._compiled:
            try:
                parsed = parse(text)
                self._compiled[text] = Compiled(rule, parsed, compile_expression(parsed))
            except ValueError as error:
                self._break(rule, str(error))
        known = self._compiled[text]
        if known is None:
            return None
        if rule.broken is not None:
            self._tell_broken(rule, None)
        return Compiled(rule, known.parsed, known.holds)

    def _break(self, rule: Rule, why: str) -> None:
        self._compiled[rule.expression] = None
        if rule.broken != why:
            server_log.of().error("the rule {} is broken: {}", rule.name, why)
            self._tell_broken(rule, why)


def alert_of(one: Compiled, facts: Facts, key: str, **about: object) -> NewAlert:
    """`about`: job_id, attempt_id, node_id."""
    names = sorted(one.parsed.names)
    latest = {name: facts.latest(name) for name in names}
    values = {name: plain(sample.value) for name, sample in latest.items() if sample is not None}
    since = facts.now - max(one.rule.for_s, one.parsed.longest_window_s, 600.0)
    series = [facts.window(name, since) for name in names]
    params: Mapping[str, object] = {
        "rule": one.rule.name,
        "expression": one.rule.expression,
        "for_s": one.rule.for_s,
        "values": values,
    }
    return NewAlert(
        key=key,
        level=one.rule.level,
        code=rules.CODE,
        params=params,
        evidence=excerpt(*series),
        **about,  # type: ignore[arg-type]
    )
