"""The loop that looks at what runs: detectors and rules, alerts, health, and what is done.

Only the owning server watches an attempt. Evidence of a stall is taken before anything is done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from runyard.domain import errors
from runyard.domain.job import Attempt, Job
from runyard.domain.monitoring import (
    disk_full,
    gpu_trouble,
    idle_gpu,
    loss_divergence,
    loss_plateau,
    loss_spike,
    memory_leak,
    not_finite,
    slow_down,
    stalled_training,
)
from runyard.domain.monitoring.alert import AlertLevel, NewAlert
from runyard.domain.monitoring.finding import Finding
from runyard.domain.monitoring.rules import rule as rules
from runyard.domain.monitoring.rules.rule import Action, Rule
from runyard.domain.states import AttemptStatus, JobStatus
from runyard.engine.access.actor import Actor
from runyard.engine.cancel.unasked_stops import RETRY, STOP, Why
from runyard.engine.commands import Commands
from runyard.engine.loop import Loop
from runyard.engine.parts import Parts
from runyard.engine.recover import last_metrics
from runyard.engine.watch import proof_lines, rule_watch
from runyard.engine.watch.alerting import AlertDesk
from runyard.engine.watch.board import Health
from runyard.engine.watch.evidence import EvidenceTaker
from runyard.engine.watch.open_findings import OpenFindings
from runyard.engine.watch.rule_watch import Compiled, JobFacts, NodeFacts, RuleWatch
from runyard.engine.watch.watched_job import GPU_MEMORY, RSS, Limits, Moment, WatchedJob, files_of

OF_JOBS = (
    stalled_training.CODE,
    memory_leak.CODE,
    not_finite.CODE,
    loss_spike.CODE,
    loss_divergence.CODE,
    loss_plateau.CODE,
    idle_gpu.CODE,
    slow_down.CODE,
)
OF_NODES = (disk_full.CODE, gpu_trouble.CODE)
CLEAR_LOOKS = 3  # looks without a finding after which it is over
CLEAR_S = 20.0
_GPU_PARTS = ("xid", "ecc_errors", "throttled", "temperature")


@dataclass(slots=True)
class _Subject:
    watched: WatchedJob
    was_stalled: bool  # as the alert of an earlier server says
    evidence: Future[Mapping[str, Any]] | None = None


class Watching:
    def __init__(self, parts: Parts, commands: Commands, wake: Callable[[], None]) -> None:
        self._parts = parts
        self._commands = commands
        self._wake_scheduler = wake
        self._desk = AlertDesk(parts)
        interval = parts.settings.monitoring_interval
        clear = max(CLEAR_LOOKS * interval, CLEAR_S if interval >= 1 else 0.0)
        codes = (*OF_JOBS, *OF_NODES, rules.CODE)
        self._findings = OpenFindings(self._desk, codes, clear)
        self._rules = RuleWatch(self._note_broken)
        self._acted: set[tuple[int, str]] = set()
        self._subjects: dict[str, _Subject] = {}
        self._loop = Loop("watching", self.look, interval, first_after=min(1.0, interval))
        self._evidence = EvidenceTaker(parts, self._loop.wake)
        self._loaded = False
        self._looking = threading.Lock()

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()
        self._evidence.close()

    def look(self) -> float | None:
        """Once over everything; also by whoever does not want to wait for the next tick."""
        with self._looking:
            return self._look()

    def _look(self) -> float | None:
        moment = Moment(time.monotonic(), self._parts.clock())
        if not self._loaded:
            self._findings.load(moment.now)
            self._loaded = True
        running, kept = self._load()
        self._findings.ended({attempt.attempt_id for _, attempt in running})
        self._keep_subjects(running, moment)
        usable = self._rules.usable(kept)
        roles = self._roles() if usable else {}
        for job, attempt in running:
            self._look_at_job(self._subjects[attempt.attempt_id], job, moment)
            self._try_rules(job, attempt, usable, roles, moment)
            self._tell_health(job, attempt, moment)
        self._look_at_node(usable, moment)
        self._findings.settle(moment.now)
        return None

    # loading

    def _load(self) -> tuple[list[tuple[Job, Attempt]], list[Rule]]:
        """What runs here and is not being ended, and the rules."""
        with self._parts.store.read() as reader:
            attempts = reader.live_attempts(self._parts.node_id)
            attempts = [one for one in attempts if one.status is AttemptStatus.RUNNING]
            jobs = {job.id: job for job in reader.jobs_by_id([one.job_id for one in attempts])}
            kept = reader.rules()
        pairs = [(jobs[one.job_id], one) for one in attempts if one.job_id in jobs]
        return [pair for pair in pairs if pair[0].status is JobStatus.RUNNING], kept

    def _keep_subjects(self, running: Sequence[tuple[Job, Attempt]], moment: Moment) -> None:
        living = {attempt.attempt_id for _, attempt in running}
        self._subjects = {name: one for name, one in self._subjects.items() if name in living}
        self._rules.forget(living | {self._parts.node_id})
        self._acted = {done for done in self._acted if done[1] in living}
        for job, attempt in running:
            if attempt.attempt_id not in self._subjects:
                self._subjects[attempt.attempt_id] = self._subject(job, attempt, moment)

    def _subject(self, job: Job, attempt: Attempt, moment: Moment) -> _Subject:
        run_dir = str(self._parts.settings.data_dir / "attempts" / attempt.attempt_id)
        executor = self._parts.executors[attempt.executor]
        log_path = partial(executor.log_path, attempt.attempt_id, "")
        files = files_of(run_dir, log_path, job)
        stalled = self._findings.is_open(_key(attempt.attempt_id, stalled_training.CODE))
        return _Subject(WatchedJob(job, attempt, files, moment.now), stalled)

    def _roles(self) -> dict[str, str]:
        with self._parts.store.read() as reader:
            known = reader.keys()
        return {key.name: key.role for key in known}

    # jobs

    def _look_at_job(self, subject: _Subject, job: Job, moment: Moment) -> None:
        settings, watched = self._parts.settings, subject.watched
        watched.job = job
        limits = self._limits(watched)
        found = watched.look(
            self._parts.board, moment, settings.stall_min_s, limits, settings.detectors_off
        )
        for about, finding in found.items():
            if finding.code == stalled_training.CODE:
                self._stalled(subject, finding, moment)
            else:
                alert = self._with_line(_alert(watched, about, finding), watched, finding)
                self._findings.found(alert, moment.now, moment.wall)
                if settings.nan_action == "stop" and _is_lost(finding):
                    self._stop(job, alert.key, Why("nan", "monitor", RETRY), moment)
        if subject.was_stalled and stalled_training.CODE not in found:
            key = _key(watched.attempt.attempt_id, stalled_training.CODE)
            subject.was_stalled = not watched.pace.gaps and self._findings.is_open(key)
            if subject.was_stalled:
                self._findings.still(key, moment.now)

    def _limits(self, watched: WatchedJob) -> Limits:
        parts, latest = self._parts, self._parts.board.latest(watched.job.id)
        rss, percent = latest.get(RSS), latest.get("gpu.memory_percent")
        host = float(parts.machine.capacity.memory_mb)
        used = parts.board.node_latest(parts.node_id).get("node.memory_percent")
        if used is not None and rss is not None:
            host = rss.value + host * max(0.0, 100 - used.value) / 100
        if watched.job.spec.memory_asked and parts.settings.enforce_memory != "off":
            host = min(host, float(watched.attempt.request.memory_mb) or host)
        gpu = latest.get(GPU_MEMORY)
        known = gpu is not None and percent is not None and percent.value > 0.1
        total = 100 * gpu.value / percent.value if known and gpu and percent else None
        return Limits(host, total)

    def _stalled(self, subject: _Subject, finding: Finding, moment: Moment) -> None:
        """Evidence first; the alert tells where it is; then what the settings say."""
        watched = subject.watched
        alert = _alert(watched, stalled_training.CODE, finding)
        if self._findings.is_open(alert.key):
            self._findings.found(alert, moment.now, moment.wall)
            return
        if subject.evidence is None:
            subject.evidence = self._evidence.take(watched.attempt, "stall")
        if not subject.evidence.done():
            return  # the loop is woken when it is there
        taken, subject.evidence = subject.evidence.result(), None
        alert = self._with_line(alert, watched, finding)
        alert = replace(alert, evidence={**alert.evidence, **taken})
        self._findings.found(alert, moment.now, moment.wall)
        if self._parts.settings.stall_action == "stop" and finding.params["basis"] == "steps":
            self._stop(watched.job, alert.key, Why("stall", "monitor", RETRY), moment)

    def _with_line(self, alert: NewAlert, watched: WatchedJob, finding: Finding) -> NewAlert:
        """With the line of the log that shows it, looked for once."""
        if self._findings.is_open(alert.key):
            return alert
        shown = proof_lines.of(watched.log, finding)
        return replace(alert, evidence={**alert.evidence, **shown})

    def _tell_health(self, job: Job, attempt: Attempt, moment: Moment) -> None:
        board = self._parts.board
        worst = self._findings.worst(f"{attempt.attempt_id}:")
        known = board.health(job.id)
        if worst is not None:
            alert = worst.alert
            board.set_health(
                job.id, Health(alert.level.value, alert.code, alert.params, worst.since)
            )
        elif known.level != "ok":
            seen = board.progress(job.id) is not None or bool(board.names(job.id))
            if seen or known.level != "unknown":
                board.set_health(job.id, Health("ok", since=moment.wall))

    # rules

    def _try_rules(
        self,
        job: Job,
        attempt: Attempt,
        usable: Sequence[Compiled],
        roles: Mapping[str, str],
        moment: Moment,
    ) -> None:
        if not usable:
            return
        facts = JobFacts(self._parts.board, job, attempt, moment.wall)
        for one in usable:
            by_admin = roles.get(one.rule.created_by) == "admin"
            if rules.of_machines(one.parsed, one.rule.actions) or not (
                by_admin or one.rule.created_by == job.owner
            ):
                continue
            if self._rules.fires(one, attempt.attempt_id, facts, moment.now):
                self._fired(one, job, attempt, facts, moment)

    def _fired(
        self, one: Compiled, job: Job, attempt: Attempt, facts: JobFacts, moment: Moment
    ) -> None:
        about: dict[str, Any] = {"job_id": job.id, "attempt_id": attempt.attempt_id}
        key = _key(attempt.attempt_id, f"{rules.CODE}:{one.rule.name}")
        alert = rule_watch.alert_of(one, facts, key, **about)
        ending = rules.ending_of(one.rule.actions)
        self._findings.found(alert, moment.now, moment.wall, kept=ending is not None)
        done = (one.rule.id, attempt.attempt_id)
        if ending is None or done in self._acted:
            return
        self._acted.add(done)
        by = f"rule:{one.rule.name}"
        if ending is Action.CANCEL:
            self._cancel(job, alert.key, by, moment)
        else:
            then = RETRY if ending is Action.RETRY else STOP
            self._stop(job, alert.key, Why("rule", by, then, one.rule.name), moment)

    def _cancel(self, job: Job, key: str, by: str, moment: Moment) -> None:
        try:
            self._commands.cancel(job.ref, Actor(by, "admin"), cause="rule")
        except errors.AlreadyEnded:
            return
        self._findings.acted(key, {"action": "cancel", "at": moment.wall, "by": by})
        self._wake_scheduler()

    def _stop(self, job: Job, key: str, why: Why, moment: Moment) -> None:
        if self._commands.stop(job.ref, why):
            action = "retry" if why.then == RETRY else "checkpoint-and-stop"
            told = {"action": action, "at": moment.wall, "by": why.by, "cause": why.cause}
            self._findings.acted(key, told)

    def _note_broken(self, rule: Rule, why: str | None) -> None:
        self._parts.store.write(lambda tx: tx.set_rule_broken(rule.id, why), durable=False)

    # machines

    def _look_at_node(self, usable: Sequence[Compiled], moment: Moment) -> None:
        board, node = self._parts.board, self._parts.node_id
        free = board.node_window(node, "node.disk_free_gb")
        found = {disk_full.CODE: disk_full.find(free)}
        for index in _gpu_indexes(board.node_names(node)):
            windows = {part: board.node_window(node, f"gpu.{index}.{part}") for part in _GPU_PARTS}
            about = f"{gpu_trouble.CODE}:{index}"
            found[about] = gpu_trouble.find(gpu_trouble.GpuSeries(index, **windows))
        for about, finding in found.items():
            if finding is not None and finding.code not in self._parts.settings.detectors_off:
                alert = _of_node(node, about, finding)
                self._findings.found(alert, moment.now, moment.wall)
        facts = NodeFacts(board, node, moment.wall)
        for one in usable:
            if not rules.of_machines(one.parsed, one.rule.actions):
                continue
            if self._rules.fires(one, node, facts, moment.now):
                key = _key(node, f"{rules.CODE}:{one.rule.name}")
                alert = rule_watch.alert_of(one, facts, key, node_id=node)
                self._findings.found(alert, moment.now, moment.wall)


def _is_lost(finding: Finding) -> bool:
    """A loss that stays no number: whatever is computed from it is none either."""
    return (
        finding.code == not_finite.CODE
        and finding.level is AlertLevel.ERROR
        and finding.params["lasting"] is True
        and finding.params["metric"] in last_metrics.LOSSES
    )


def _key(subject: str, about: str) -> str:
    """`subject` is an attempt or a node: what begins with it is about it."""
    return f"{subject}:{about}"


def _alert(watched: WatchedJob, about: str, finding: Finding) -> NewAlert:
    return NewAlert(
        key=_key(watched.attempt.attempt_id, about),
        level=finding.level,
        code=finding.code,
        params=finding.params,
        job_id=watched.job.id,
        attempt_id=watched.attempt.attempt_id,
        node_id=watched.attempt.node_id,
        evidence=finding.evidence,
    )


def _of_node(node_id: str, about: str, finding: Finding) -> NewAlert:
    return NewAlert(
        key=_key(node_id, about),
        level=finding.level,
        code=finding.code,
        params=finding.params,
        node_id=node_id,
        evidence=finding.evidence,
    )


def _gpu_indexes(names: Sequence[str]) -> list[int]:
    found = {name.split(".")[1] for name in names if name.startswith("gpu.")}
    return sorted(int(part) for part in found if part.isdigit())
