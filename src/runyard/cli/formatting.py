"""Amounts, times and bars as short text."""

from __future__ import annotations

import signal
import time
import unicodedata
from collections.abc import Mapping
from typing import Any


def epoch(value: Any) -> float | None:
    """Seconds since the epoch out of what the API may give: a number or an ISO time."""
    if value is None or value == "":
        return None
    if isinstance(value, (int, float)):
        return float(value)
    from datetime import UTC, datetime

    try:
        when = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def span(seconds: float | None) -> str:
    """4s, 12m, 3h 20m, 5d 2h."""
    if seconds is None:
        return "-"
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60}s" if whole < 600 else f"{whole // 60}m"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"


def age(value: Any, now: float | None = None) -> str:
    since = epoch(value)
    return "-" if since is None else span((time.time() if now is None else now) - since)


def clock(value: Any) -> str:
    """Local time; with the date when it is not today."""
    when = epoch(value)
    if when is None:
        return "-"
    local = time.localtime(when)
    today = time.localtime()
    same_day = local[:3] == today[:3]
    return time.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S", local)


def number(value: Any) -> str:
    """8, 0.5, 1.25: no zeros that say nothing; what is small is not told as none."""
    if 0 < abs(float(value)) < 0.001:
        return f"{float(value):.3g}"
    return f"{float(value):.3f}".rstrip("0").rstrip(".")


def gigabytes(value: Any) -> str:
    amount = float(value)
    return f"{amount * 1024:.0f}MB" if 0 < amount < 1 else f"{number(round(amount, 1))}GB"


def size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if count < 1024 or unit == "TB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def resources(job: Mapping[str, Any]) -> str:
    """8C / 32GB / 2GPU, the GPU left out when there is none."""
    parts = []
    if job.get("cpu_cores") is not None:
        parts.append(f"{number(job['cpu_cores'])}C")
    if job.get("memory_gb") is not None:
        parts.append(gigabytes(job["memory_gb"]))
    if job.get("gpu_count"):
        kind = f" {job['gpu_type']}" if job.get("gpu_type") else ""
        parts.append(f"{number(job['gpu_count'])}GPU{kind}")
    return " / ".join(parts) or "-"


def bar(percent: float, width: int = 10) -> str:
    filled = round(max(0.0, min(100.0, percent)) / 100 * width)
    return "█" * filled + "░" * (width - filled) + f" {percent:3.0f}%"


def clean(text: str) -> str:
    """On one line and without what a terminal would obey."""
    return "".join(
        " " if letter in "\t\r\n" else letter
        for letter in text
        if letter in "\t\r\n" or unicodedata.category(letter) not in ("Cc", "Cf", "Cs")
    )


def columns(text: str) -> int:
    """How many columns of a terminal it takes; Chinese letters take two."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(letter)
        else 2
        if unicodedata.east_asian_width(letter) in "WF"
        else 1
        for letter in text
    )


def cut(text: str, width: int) -> str:
    if columns(text) <= width:
        return text
    kept = ""
    for letter in text:
        if columns(kept + letter) > width - 1:
            break
        kept += letter
    return kept + "…"


def signal_name(number: Any) -> str:
    try:
        return signal.Signals(int(number)).name
    except (ValueError, TypeError):
        return str(number)
