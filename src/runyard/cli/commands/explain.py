"""runyard explain: one screen on why a job waits, or why it ended as it did."""

from __future__ import annotations

import argparse
from typing import Any

from runyard.cli import (
    formatting,
    job_rows,
    options,
    preflight_words,
    repair_words,
    tables,
    wording,
)
from runyard.cli.commands.show import command_text, how_ended
from runyard.cli.live_view import estimate_text
from runyard.sdk.job import ENDED

# Reasons to wait that a person can do something about
_STEPS = frozenset({"never_fits", "gpu_type_absent", "gate", "executor_unavailable", "no_node"})


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="id (job-... or a number)")
    options.add_read(parser)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    told = client.explain(args.job)
    if args.json:
        tables.print_json(told)
        return 0
    job = client.get(args.job)
    print(tables.bold(f"{job['job_id']}  {formatting.clean(str(job.get('name') or ''))}"))
    tables.print_card(_ended(job) if job.get("status") in ENDED else _unfinished(job))
    story = repair_words.story(told)
    for part in (repair_words.downloads(told), story):
        if part:
            print()
            print("\n".join(part))
    for saved in told.get("evidence") or ():
        print()
        print(tables.dim(wording.say("evidence_saved", **saved)))
        print("  " + ", ".join(map(str, saved.get("files") or ())))
    lines = told.get("log_tail") or []
    service = told.get("log_of")
    # The story quotes the job's own log, never a service's.
    if lines and (service or not story):
        print()
        key = "last_lines_of_service" if service else "last_lines"
        print(tables.dim(wording.say(key, service=service)))
        for line in lines:
            print("  " + formatting.clean(str(line)))
    return 0


def _unfinished(job: dict[str, Any]) -> list[tuple[str, str]]:
    wait = job.get("wait") or {}
    since = ("waiting for", formatting.age(job.get("queued_at") or job.get("submitted_at")))
    if not wait and job.get("started_at"):
        since = ("running for", formatting.age(job.get("started_at")))
    return [
        ("status", wording.status(str(job.get("status")))),
        ("why", job_rows.why(job)),
        ("checks", "\n".join(preflight_words.worth_telling(job.get("preflight")))),
        ("needs", formatting.resources(job)),
        ("priority", str(job.get("priority") or "")),
        ("place", str(wait.get("position") or "")),
        ("start", estimate_text(wait)),
        ("behind", ", ".join(map(str, wait.get("blockers") or ()))),
        since,
        ("next", _next(job.get("reason") or {})),
    ]


def _next(reason: dict[str, Any]) -> str:
    code, params = reason.get("code"), reason.get("params") or {}
    return wording.say(f"next_{code}", **params) if code in _STEPS else ""


def _ended(job: dict[str, Any]) -> list[tuple[str, str]]:
    attempt = job.get("attempt") or {}
    exit_text = how_ended(attempt) if attempt else ""
    diagnosis = job.get("diagnosis") or {}
    return [
        ("status", wording.status(str(job.get("status")))),
        ("why", wording.reason(job.get("reason"))),
        ("checks", "\n".join(preflight_words.worth_telling(job.get("preflight")))),
        ("exit", exit_text),
        ("cause", str(attempt.get("cause") or "")),
        (
            "diagnosis",
            repair_words.diagnosis(diagnosis.get("explanation"), diagnosis.get("category")),
        ),
        ("attempts", str(attempt.get("number") or 0)),
        ("command", command_text(job.get("command"))),
        ("started", formatting.clock(job.get("started_at"))),
        ("ended", formatting.clock(job.get("completed_at"))),
        ("log", f"runyard logs {job['job_id']}"),
    ]
