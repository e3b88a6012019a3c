"""What supervisors tell of a job's services: events, lines in the log, and an alert while one does
not answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.domain import events
from runyard.domain.events import Event
from runyard.domain.monitoring.alert import SERVICE_UNHEALTHY, Alert, AlertLevel, NewAlert
from runyard.domain.states import AttemptStatus
from runyard.engine import server_log
from runyard.engine.parts import Parts
from runyard.engine.watch import alerting
from runyard.executors.base import News
from runyard.stores.base import Transaction

_ACTOR = "supervisor"
_EVENTS = {
    "service_ready": events.SERVICE_READY,
    "service_exit": events.SERVICE_EXITED,
    "service_unhealthy": events.SERVICE_UNHEALTHY,
    "service_healthy": events.SERVICE_HEALTHY,
}
_WORDS = {
    events.SERVICE_READY: "service is ready",
    events.SERVICE_EXITED: "service ended",
    events.SERVICE_UNHEALTHY: "service does not answer",
    events.SERVICE_HEALTHY: "service answers again",
}
_PARAMS = ("restarts", "code", "signal", "restart_in_s", "said")


class ServiceNews:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def heard(self, news: News) -> None:
        told = news.service
        code = _EVENTS.get(str(told.get("kind")))
        if code is None:
            return
        service = str(told.get("name"))
        params = {"service": service} | {name: told[name] for name in _PARAMS if name in told}
        alert = self._parts.store.write(
            lambda tx: _record(tx, news, code, params, self._parts.clock()), durable=False
        )
        log = server_log.of(news.attempt_id.rpartition(".")[0], news.attempt_id)
        log.log(_level(code, params), "{}: {}", _WORDS[code], params)
        if alert is not None:
            alerting.tell(alert)


def _level(code: str, params: Mapping[str, Any]) -> str:
    failed = code == events.SERVICE_EXITED and params.get("code") != 0
    return "WARNING" if failed or code == events.SERVICE_UNHEALTHY else "INFO"


def _record(
    tx: Transaction, news: News, code: str, params: Mapping[str, Any], now: float
) -> Alert | None:
    attempt = tx.attempt(news.attempt_id)
    if attempt is None or attempt.status is AttemptStatus.ENDED:
        return None
    tx.append_event(attempt.job_id, Event(code, news.at, _ACTOR, news.attempt_id, params))
    key = f"{SERVICE_UNHEALTHY}:{news.attempt_id}:{params['service']}"
    if code != events.SERVICE_UNHEALTHY:
        alerting.close_in(tx, key, now, _ACTOR)
        return None
    found = NewAlert(
        key=key,
        level=AlertLevel.WARNING,
        code=SERVICE_UNHEALTHY,
        params={"service": params["service"], "said": params.get("said")},
        job_id=attempt.job_id,
        attempt_id=news.attempt_id,
        node_id=attempt.node_id,
    )
    return alerting.open_in(tx, found, now, _ACTOR)
