"""runyard show: one job as a card, with its attempts; --receipt: what its end gave back."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from runyard.cli import (
    alert_rows,
    formatting,
    job_rows,
    options,
    preflight_words,
    receipts,
    tables,
    wording,
)
from runyard.cli.live_view import estimate_text
from runyard.sdk import errors
from runyard.sdk.client import Client


def configure(parser: argparse.ArgumentParser) -> None:
    options.add_jobs(parser)
    parser.add_argument("--receipt", action="store_true", help="proof of what the end gave back")
    parser.add_argument("--events", action="store_true", help="everything that happened to it")
    options.add_read(parser)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    ids = options.job_ids(args.jobs)
    ask = client.receipt if args.receipt else client.events if args.events else client.get
    try:
        found: list[Any] = [ask(job_id) for job_id in ids]
    except errors.JobNotFound:
        raise
    except errors.NotFound:
        if not args.receipt:
            raise
        print(wording.say("receipt_none", job=", ".join(ids)))
        return 0
    if args.json:
        tables.print_json(found[0] if len(found) == 1 else found)
        return 0
    for place, (job_id, answer) in enumerate(zip(ids, found, strict=True)):
        if place:
            print()
        if args.receipt:
            receipts.print_receipt(job_id, answer)
        elif args.events:
            _print_events(answer)
        else:
            print_job(answer, client.attempts(job_id))
            _print_alerts(client, job_id)
    return 0


def print_job(job: dict[str, Any], attempts: list[dict[str, Any]]) -> None:
    print(tables.bold(f"{job['job_id']}  {formatting.clean(str(job.get('name') or ''))}"))
    tables.print_card(_pairs(job))
    if attempts:
        print()
        tables.print_table(
            ("ATTEMPT", "STATUS", "EXIT", "STARTED", "TOOK", "NODE", "GPUS", "CAUSE"),
            [_attempt_row(attempt) for attempt in attempts],
            elastic=(7,),
        )


def _pairs(job: dict[str, Any]) -> list[tuple[str, str]]:
    status = wording.status(str(job.get("status")))
    if job.get("stage") and job["stage"] != job.get("status"):
        status += f" ({job['stage']})"
    wait = job.get("wait") or {}
    place = str(wait.get("position") or "")
    return [
        ("number", str(job.get("id") or "")),
        ("status", status),
        ("why", job_rows.why(job)),
        ("place", ", ".join(text for text in (place, estimate_text(wait)) if text)),
        ("checks", "\n".join(preflight_words.worth_telling(job.get("preflight")))),
        ("progress", job_rows.progress(job)),
        ("command", command_text(job.get("command"))),
        ("directory", str(job.get("working_dir") or "")),
        ("image", str(job.get("image") or "")),
        ("resources", formatting.resources(job)),
        ("priority", str(job.get("priority") or "")),
        ("owner", str(job.get("owner") or "")),
        ("labels", _joined(job.get("labels"))),
        ("params", _joined(job.get("params"))),
        ("environment", _joined(job.get("env_vars"))),
        ("services", "\n".join(map(_service, (job.get("attempt") or {}).get("services") or ()))),
        ("ranks", ranks_text(job)),
        ("depends on", ", ".join(_dependency(item) for item in job.get("depends_on") or ())),
        ("retries", f"{job.get('retry_count') or 0} (at most {job.get('max_retries')})"),
        ("time limit", formatting.span(job["timeout_s"]) if job.get("timeout_s") else ""),
        ("output", str(job.get("output_path") or "")),
        ("submitted", formatting.clock(job.get("submitted_at"))),
        ("started", formatting.clock(job.get("started_at"))),
        ("ended", formatting.clock(job.get("completed_at"))),
    ]


def command_text(command: Any) -> str:
    text = shlex.join(map(str, command)) if isinstance(command, list) else str(command or "")
    return "\n".join(formatting.clean(line) for line in text.split("\n"))


def ranks_text(job: dict[str, Any]) -> str:
    """How many ranks there are, then how each is, those alike together."""
    shape = job.get("distributed")
    if not shape:
        return ""
    nodes, each = int(shape["nodes"]), int(shape["procs_per_node"])
    lines = [f"{nodes * each} ({nodes} x {each}, {shape['launcher']})"]
    alike: dict[str, list[int]] = {}
    for one in (job.get("attempt") or {}).get("ranks") or ():
        alike.setdefault(_rank_state(one), []).append(int(one["rank"]))
    lines += [f"{_ranges(ranks)}: {state}" for state, ranks in alike.items()]
    return "\n".join(lines)


def _rank_state(one: dict[str, Any]) -> str:
    if one.get("state") != "ended":
        return str(one.get("state") or "?")
    if one.get("signal") is None and one.get("exit_code") is None:
        return "ended"
    exited = one.get("signal") is None
    return f"exit {one['exit_code']}" if exited else formatting.signal_name(one["signal"])


def _ranges(numbers: list[int]) -> str:
    """0-3, 6"""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def how_ended(attempt: dict[str, Any]) -> str:
    if attempt.get("signal"):
        return formatting.signal_name(attempt["signal"])
    return "-" if attempt.get("exit_code") is None else str(attempt["exit_code"])


def _nodes(attempt: dict[str, Any]) -> str:
    """Where it runs: nodes of a cluster, else the machine of the server that holds it."""
    parts = [str(one["node"]) for one in attempt.get("slices") or () if one.get("node")]
    return ", ".join(dict.fromkeys(parts)) or str(attempt.get("node") or "-")


def _attempt_row(attempt: dict[str, Any]) -> list[str]:
    begun = formatting.epoch(attempt.get("started_at"))
    over = formatting.epoch(attempt.get("ended_at"))
    took = formatting.span(over - begun) if begun is not None and over is not None else "-"
    gpus = ",".join(str(gpu.get("index")) for gpu in attempt.get("gpus") or ())
    return [
        str(attempt.get("number")),
        wording.status(str(attempt.get("end") or attempt.get("status"))),
        how_ended(attempt),
        formatting.clock(attempt.get("started_at")),
        took if over is not None else formatting.age(attempt.get("started_at")),
        _nodes(attempt),
        gpus or "-",
        str(attempt.get("cause") or "-"),
    ]


def _print_alerts(client: Client, job_id: str) -> None:
    try:
        alerts = client.alerts(status=("open", "acknowledged"), job=job_id)
    except errors.NotFound:  # an older server has none
        return
    if alerts:
        print()
        alert_rows.print_alerts(alerts)


def _print_events(events: list[dict[str, Any]]) -> None:
    tables.print_table(
        ("WHEN", "EVENT", "BY", "DETAILS"),
        [
            [
                formatting.clock(event.get("at")),
                str(event.get("code")),
                str(event.get("actor") or "-"),
                _joined(event.get("params")),
            ]
            for event in events
        ],
        elastic=(3,),
    )


def _service(service: dict[str, Any]) -> str:
    restarts = service.get("restarts")
    told = (service.get("name"), service.get("state"), service.get("url"))
    words = [str(word) for word in told if word]
    return " ".join(words + ([wording.say("restarts", count=restarts)] if restarts else []))


def _dependency(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    return f"{item.get('job')}" + (":end" if item.get("on") == "end" else "")


def _joined(pairs: Any) -> str:
    if not isinstance(pairs, dict):
        return ""
    known = (f"{name}={value}" for name, value in pairs.items() if value is not None)
    return formatting.clean(", ".join(known))
