"""The page of `runyard top`: machines, GPUs, what runs, what waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runyard.cli import formatting, job_rows, plot, tables, wording

_BAR = 10
_SPARK = 20


@dataclass(slots=True)
class Now:
    """What the page is made of."""

    status: Mapping[str, Any] = field(default_factory=dict)
    waiting: Sequence[Mapping[str, Any]] = ()
    losses: Mapping[str, Sequence[float]] = field(default_factory=dict)  # by job
    live: bool = True


def lines(now: Now, width: int, height: int | None, *, unicode: bool, colour: bool) -> list[str]:
    """At most `height` of them; jobs that find no room are counted."""
    page = _Page(width, unicode, colour)
    head = [*page.head(now), "", *page.nodes(now.status), *page.gpus(now.status), ""]
    jobs = page.jobs(now)
    waiting = page.waiting(now)
    if height is None:
        return [*head, *jobs, *waiting]
    room = max(2, height - len(head))
    if len(jobs) + len(waiting) > room:
        waiting = waiting[: max(0, min(len(waiting), room // 3))]
        jobs = page.cut(jobs, room - len(waiting))
    return [*head, *jobs, *waiting][:height]


class _Page:
    def __init__(self, width: int, unicode: bool, colour: bool) -> None:
        self._width = width
        self._unicode = unicode
        self._colour = colour

    def head(self, now: Now) -> list[str]:
        status, counts = now.status, now.status.get("counts") or {}
        ended = sum(int(counts.get(word) or 0) for word in ("completed", "failed", "cancelled"))
        waiting = int(counts.get("pending") or 0) + int(counts.get("retrying") or 0)
        told = [
            f"runyard top  {formatting.clock(status.get('at')) if status else '-'}",
            wording.say(
                "top_head",
                running=len(status.get("running") or ()),
                limit=status.get("max_concurrent", "?"),
                waiting=waiting,
                ended=ended,
            ),
        ]
        if status.get("dispatching") is False:
            told.append(self._paint(wording.say("top_paused"), "33"))
        alerts = (status.get("alerts") or {}).get("open") or 0
        if alerts:
            told.append(self._paint(wording.say("top_alerts", count=alerts), "31"))
        at = formatting.clock(status.get("at"))
        told.append(
            wording.say("top_live")
            if now.live
            else self._paint(wording.say("top_lost", at=at), "33")
        )
        return ["  ".join(told)]

    def nodes(self, status: Mapping[str, Any]) -> list[str]:
        rows = []
        for node in status.get("nodes") or ():
            found = node.get("metrics") or {}
            load = node.get("load") or {}
            cells = [formatting.cut(formatting.clean(str(node.get("name"))), 16)]
            for word in ("cpu", "memory", "disk"):
                value = _number(found.get(f"{word}_percent"), load.get(word))
                cells.append(f"{word} {self._bar(value)}")
            net = [_number(found.get(f"net_{way}_mb_s")) for way in ("in", "out")]
            if None not in net:
                cells.append(f"net {net[0]:.1f}/{net[1]:.1f} MB/s")
            if not node.get("alive", True):
                cells.append("gone")
            elif node.get("drained"):
                cells.append("drained")
            rows.append(self._fit("  ".join(cells)))
        return rows

    def gpus(self, status: Mapping[str, Any]) -> list[str]:
        rows = []
        for gpu in status.get("gpus") or ():
            found = gpu.get("metrics") or {}
            total, used = gpu.get("memory_mb"), _number(found.get("memory_mb"), gpu.get("used_mb"))
            share = None if not total or used is None else 100 * used / float(total)
            cells = [f"GPU {gpu.get('index')}", f"util {self._bar(_number(found.get('util')))}"]
            cells.append(f"mem {self._bar(share)}")
            for name, unit in (("temperature", "°C"), ("power_w", "W")):
                if (value := _number(found.get(name))) is not None:
                    cells.append(f"{value:.0f}{unit if self._unicode else unit.strip('°')}")
            jobs = [str(job.get("job_id")) for job in gpu.get("jobs") or ()]
            cells.append(", ".join(jobs) or ("fenced" if gpu.get("fenced") else "-"))
            rows.append(self._fit("  ".join(cells)))
        return rows

    def jobs(self, now: Now) -> list[str]:
        running = now.status.get("running") or []
        if not running:
            return [wording.say("top_idle")]
        headings = ("ID", "NAME", "STAGE", "PROGRESS", "LEFT", "STEP", "LOSS", "", "CPU", "MEM")
        rows = [self._job(job, now.losses.get(str(job.get("job_id"))) or ()) for job in running]
        drawn = tables.lines(headings, rows, elastic=(1,), width=None)
        return [self._fit(line) for line in drawn]

    def _job(self, job: Mapping[str, Any], losses: Sequence[float]) -> list[str]:
        progress, eta = job.get("progress") or {}, job.get("eta") or {}
        use, metrics = job.get("use") or {}, job.get("metrics") or {}
        loss = metrics.get("loss")
        health = (job.get("health") or {}).get("level")
        stage = str(job.get("stage") or job.get("status") or "")
        return [
            str(job.get("job_id")),
            formatting.cut(str(job.get("name") or ""), 24),
            stage if health in (None, "ok", "unknown") else f"{stage} ({health})",
            self._bar(_number(progress.get("percent")) or 0.0),
            formatting.span(eta["seconds"]) if eta.get("seconds") is not None else "-",
            _step(progress),
            "-" if loss is None else plot.short(float(loss)),
            plot.sparkline(losses, _SPARK, ascii_only=not self._unicode),
            _share(use.get("cpu_cores"), use.get("cpu_cores_given"), "C"),
            _share(use.get("memory_gb"), use.get("memory_gb_given"), "GB"),
        ]

    def waiting(self, now: Now) -> list[str]:
        if not now.waiting:
            return []
        rows = [
            [
                str(job.get("job_id")),
                formatting.cut(str(job.get("name") or ""), 24),
                wording.status(str(job.get("status"))),
                job_rows.why(job) or "-",
                formatting.age(job.get("queued_at")),
            ]
            for job in now.waiting
        ]
        drawn = tables.lines(("ID", "NAME", "STATUS", "WHY", "AGE"), rows, elastic=(3,))
        return ["", wording.say("top_waiting"), *(self._fit(line) for line in drawn)]

    def cut(self, lines: list[str], room: int) -> list[str]:
        if len(lines) <= room:
            return lines
        shown = max(1, room - 1)
        return [*lines[:shown], wording.say("top_more", count=len(lines) - shown)]

    def _bar(self, percent: float | None) -> str:
        if percent is None:
            return f"{'-':>{_BAR + 5}}"
        text = formatting.bar(percent, _BAR)
        return text if self._unicode else text.replace("█", "#").replace("░", ".")

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text

    def _fit(self, line: str) -> str:
        return formatting.cut(line, self._width)


def _number(*values: Any) -> float | None:
    """The first that is a number; NaN travels as a word and is none."""
    return next((float(one) for one in values if isinstance(one, (int, float))), None)


def _step(progress: Mapping[str, Any]) -> str:
    for name, total in (("step", "total_steps"), ("epoch", "total_epochs")):
        value = progress.get(name)
        if value is not None:
            shown = formatting.number(value)
            of = progress.get(total)
            word = "" if name == "step" else "ep "
            return f"{word}{shown}/{formatting.number(of)}" if of else f"{word}{shown}"
    return "-"


def _share(used: Any, given: Any, unit: str) -> str:
    if used is None:
        return "-"
    of = f"/{formatting.number(round(float(given), 1))}" if given else ""
    return f"{float(used):.1f}{of}{unit}"
