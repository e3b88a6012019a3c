"""A notification in words, for services where people read it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType
from typing import Any

from runyard.domain.notifications import ALERT, TEST, Delivery
from runyard.notify.words import en, zh

LANGUAGES: Mapping[str, ModuleType] = {"en": en, "zh": zh}
_LONGEST = 300
_LEVELS = {"completed": "good", "repaired": "good", "failed": "bad", TEST: "info"}


@dataclass(frozen=True, slots=True)
class Said:
    title: str
    body: str
    level: str  # good, bad, warning, info


def of(delivery: Delivery, lang: str) -> Said:
    words = LANGUAGES[lang]
    job: Mapping[str, Any] = delivery.body.get("job") or {}
    alert: Mapping[str, Any] = delivery.body.get("alert") or {}
    event = "alert_of_job" if delivery.event == ALERT and job else delivery.event
    what = _worded(words.ALERTS, words, alert) if alert else ""
    known = {"name": job.get("name"), "level": alert.get("level"), "what": what}
    title = words.TITLES[event].format_map(known)
    lines = _lines(delivery, words, job, alert)
    body = "\n".join(words.LINES[name].format_map(values) for name, values in lines)
    level = _LEVELS.get(delivery.event, "info")
    if delivery.event == ALERT:
        level = "warning" if alert.get("level") == "warning" else "bad"
    return Said(title, body, level)


def _lines(
    delivery: Delivery, words: ModuleType, job: Mapping[str, Any], alert: Mapping[str, Any]
) -> list[tuple[str, dict[str, Any]]]:
    if delivery.event == TEST:
        return [("test", {"asked_by": delivery.body.get("asked_by")})]
    found: list[tuple[str, dict[str, Any]]] = []
    if job:
        found.append(("job", {"job_id": job["job_id"]}))
        found.append(("owner", {"owner": job["owner"]}))
    if alert:
        if alert.get("node_id"):
            found.append(("node", {"node_id": alert["node_id"]}))
        if alert.get("params"):
            found.append(("params", {"params": _plain(alert["params"])}))
    elif job:
        found += _of_end(words, job)
    if job:
        found.append(("url", {"url": job["url"]}))
    return found


def _of_end(words: ModuleType, job: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    if reason := job.get("reason"):
        found.append(("reason", {"reason": _worded(words.REASONS, words, reason)}))
    if job.get("exit_code") is not None:
        found.append(("exit_code", {"exit_code": job["exit_code"]}))
    if (took := _took(job)) is not None:
        found.append(("took", {"took": took}))
    return found


def _plain(params: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name}: {value}" for name, value in params.items() if value is not None)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _worded(templates: Mapping[str, str], words: ModuleType, told: Mapping[str, Any]) -> str:
    """A code with its parameters as a phrase; one without words as it is."""
    code, params = str(told.get("code")), dict(told.get("params") or {})
    template = templates.get(code)
    if template is None:
        plain = _plain(params)
        return f"{code} ({plain})" if plain else code
    known = {name: _value(name, value, words) for name, value in params.items()}
    return template.format_map(_Lenient(known))


def _value(name: str, value: Any, words: ModuleType) -> str:
    if name == "last" and isinstance(value, Mapping):  # a reason inside a reason
        return _worded(words.REASONS, words, value)
    if isinstance(value, int | float) and (name == "seconds" or name.endswith("_s")):
        return _span(value)
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


class _Lenient(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "?"


def _took(job: Mapping[str, Any]) -> str | None:
    if not job.get("started_at") or not job.get("ended_at"):
        return None
    began, ended = (datetime.fromisoformat(job[name]) for name in ("started_at", "ended_at"))
    return _span((ended - began).total_seconds())


def _span(seconds: float) -> str:
    whole = max(0, round(seconds)) if math.isfinite(seconds) else 0
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
