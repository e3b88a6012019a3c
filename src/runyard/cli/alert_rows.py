"""Alerts as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runyard.cli import formatting, tables, wording

HEADINGS = ("ID", "LEVEL", "STATUS", "JOB", "WHAT", "SINCE", "SEEN", "TIMES")


def print_alerts(alerts: Sequence[dict[str, Any]]) -> None:
    tables.print_table(HEADINGS, [_row(alert) for alert in alerts], elastic=(4,))


def _row(alert: dict[str, Any]) -> list[str]:
    status = str(alert.get("status"))
    if alert.get("acknowledged_by"):
        status += f" ({formatting.clean(str(alert['acknowledged_by']))})"
    return [
        str(alert.get("id")),
        str(alert.get("level")),
        status,
        str(alert.get("job_id") or "-"),
        wording.alert(alert),
        formatting.clock(alert.get("opened_at")),
        formatting.age(alert.get("seen_at")),
        str(alert.get("times")),
    ]
