"""Local services of `run`: from --local-service, and from `local_services` of a job file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from runyard.cli import amounts
from runyard.cli.complaints import Complaint

if TYPE_CHECKING:
    from runyard.sdk.services import LocalService

KEY = "local_services"
_FIELDS = ("name", "command", "port", "health", "ready_timeout_s", "restart")
_MORE_FIELDS = ("cwd", "env", "host", "grace_s", "log")


def taken(args: argparse.Namespace, job: dict[str, Any]) -> list[LocalService]:
    """Those of the file and those of the flags; the job's fields are left without them."""
    entries = job.pop(KEY, None) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Complaint(f"{KEY} is a list of services, each with a name and a command.")
    found = [_from_file(entry) for entry in entries]
    return found + [_from_flag(word) for word in getattr(args, "local_service", ())]


def refuse(args: argparse.Namespace, jobs: list[dict[str, Any]]) -> None:
    """Nobody would be there to run them."""
    if getattr(args, "local_service", ()) or any(job.get(KEY) for job in jobs):
        raise Complaint(
            "Local services end with this client, so it must stay with the job.",
            hint="Use 'runyard run' without -d, or 'services' in the job file: "
            "the server runs those beside the job.",
        )


def _from_flag(word: str) -> LocalService:
    from runyard.sdk.services import LocalService

    name, equals, command = word.partition("=")
    if not equals or not name or not command.strip():
        raise Complaint(f"--local-service {word}: NAME=COMMAND is wanted.")
    return LocalService(name.strip(), command.strip())


def _from_file(entry: dict[str, Any]) -> LocalService:
    from runyard.sdk.services import LocalService

    unknown = sorted(set(entry) - {*_FIELDS, *_MORE_FIELDS})
    if unknown:
        known = ", ".join(_FIELDS + _MORE_FIELDS)
        raise Complaint(f"{KEY}: there is no field '{unknown[0]}'; there are {known}.")
    if not isinstance(entry.get("name"), str) or not isinstance(entry.get("command"), str | list):
        raise Complaint(f"{KEY}: each has a name, and a command that is a string or a list.")
    where = f"{KEY}: {entry['name']}"
    fields = {name: value for name, value in entry.items() if value is not None}
    fields["port"] = _port(fields.get("port"), where)
    for name in ("ready_timeout_s", "grace_s"):
        if name in fields:
            fields[name] = amounts.seconds(str(fields[name]), f"{where}: {name}")
    if isinstance(fields["command"], list):
        fields["command"] = [str(word) for word in fields["command"]]
    if "env" in fields:
        if not isinstance(fields["env"], dict):
            raise Complaint(f"{where}: env is a mapping of names and values.")
        fields["env"] = {str(name): str(value) for name, value in fields["env"].items()}
    for name in ("health", "restart", "cwd", "host", "log"):
        if not isinstance(fields.get(name, ""), str):
            raise Complaint(f"{where}: {name} is a text.")
    return LocalService(**fields)


def _port(value: Any, where: str) -> int | tuple[int, int] | None:
    """auto, a number, or FIRST-LAST."""
    if value in (None, "auto"):
        return None
    first, dash, last = str(value).partition("-")
    if not first.isdigit() or (dash and not last.isdigit()):
        raise Complaint(f"{where}: port is auto, a number or FIRST-LAST, not '{value}'.")
    return (int(first), int(last)) if dash else int(first)
