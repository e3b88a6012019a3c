"""What a journal says about the services of its attempt."""

from __future__ import annotations

from typing import Any

from runyard.supervisor import journal

_FAILURE_AS_RECORDED = ("v", "kind", "time")
_STATES = {"service": "starting", "service_ready": "ready", "service_exit": "ended"}


def told(record: journal.Journal) -> dict[str, Any]:
    """For an exit record that a dead supervisor did not write; how those ended that it left
    running nobody saw."""
    fields = ("name", "pid", "port", "restarts", "exit_code", "signal")
    found: dict[str, Any] = {
        "services": [{name: one[name] for name in fields} for one in states(record)]
    }
    failed = record.first("service_failed")
    if failed is not None:
        found["service_failure"] = {
            name: value for name, value in failed.items() if name not in _FAILURE_AS_RECORDED
        }
    return found


def states(record: journal.Journal) -> list[dict[str, Any]]:
    """Each service as it is by now: starting, ready, restarting or ended."""
    found: dict[str, dict[str, Any]] = {}
    for seen in record.records:
        kind, name = seen["kind"], seen.get("name")
        if kind == "service":
            found[seen["name"]] = {
                "name": name,
                "state": _STATES[kind],
                "healthy": None,
                "pid": seen["pid"],
                "port": seen["port"],
                "restarts": seen["restarts"],
                "exit_code": None,
                "signal": None,
            }
        elif name in found and kind.startswith("service_"):
            _update(found[name], seen)
    return list(found.values())


def _update(service: dict[str, Any], seen: journal.Record) -> None:
    kind = seen["kind"]
    service["state"] = _STATES.get(kind, service["state"])
    service["healthy"] = kind in ("service_ready", "service_healthy")
    if kind == "service_exit":
        service |= {"exit_code": seen["code"], "signal": seen["signal"], "healthy": False}
        if "restart_in_s" in seen:
            service["state"] = "restarting"
