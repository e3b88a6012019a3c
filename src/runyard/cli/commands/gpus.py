"""runyard gpus: every GPU and who holds it; fence one off, or give it back."""

from __future__ import annotations

import argparse
from typing import Any

from runyard.cli import answers, options, tables, wording
from runyard.cli.complaints import Complaint


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", choices=("ls", "list", "fence", "unfence"), default="ls"
    )
    parser.add_argument("gpu", nargs="?", help="index, uuid or NODE:INDEX, for fence and unfence")
    parser.add_argument("--reason", default="", help="why it is fenced")
    options.add_read(parser, ids=True)


def run(args: argparse.Namespace) -> int:
    client = options.client(args)
    if args.action in ("fence", "unfence"):
        if args.gpu is None:
            raise Complaint(f"Which GPU? As in: runyard gpus {args.action} 0")
        fence = args.action == "fence"
        changed = client.fence(args.gpu, reason=args.reason) if fence else client.unfence(args.gpu)
        words = wording.say("fenced" if fence else "unfenced", gpu=args.gpu)
        return answers.print_one(args, changed, words)
    return answers.print_all(args, client.gpus(), "uuid", _show, empty=wording.say("no_gpus"))


def _show(gpus: list[dict[str, Any]]) -> None:
    headings = ("GPU", "NODE", "NAME", "MEMORY", "STATE", "JOBS", "OTHERS")
    tables.print_table(headings, [_row(gpu) for gpu in gpus], elastic=(2, 6))


def _row(gpu: dict[str, Any]) -> list[str]:
    used, total = gpu.get("used_mb"), gpu.get("memory_mb")
    jobs = [
        f"{job.get('job_id')}"
        + (f" ({job['share']})" if job.get("share") not in (None, 1) else "")
        for job in gpu.get("jobs") or ()
    ]
    holders = [
        f"{who.get('user')} pid {who.get('pid')} {who.get('name')}"
        for who in gpu.get("holders") or ()
    ]
    if gpu.get("locked_by_other_server"):
        holders.append(wording.say("another_server"))
    return [
        str(gpu.get("index")),
        str(gpu.get("node_id") or gpu.get("node") or "-"),
        str(gpu.get("name") or "-"),
        f"{'-' if used is None else used} / {total} MB",
        _state(gpu),
        ", ".join(jobs) or "-",
        ", ".join(holders) or "-",
    ]


def _state(gpu: dict[str, Any]) -> str:
    if gpu.get("fenced"):
        return f"fenced ({gpu['fence_reason']})" if gpu.get("fence_reason") else "fenced"
    if gpu.get("jobs"):
        return "in use"
    return "taken" if gpu.get("holders") or gpu.get("locked_by_other_server") else "free"
