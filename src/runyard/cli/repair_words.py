"""What went wrong with a job, what was changed and what happens next, in the reader's language."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from runyard.cli import formatting, wording

_LONGEST = 160
_MOST_FAILURES = 4


class _Lenient(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


def _words() -> Any:
    return importlib.import_module(f"runyard.cli.words.repair_{wording.language()}")


def reason(code: str, params: Mapping[str, Any]) -> str | None:
    """Of a job that is not tried again; None for codes that are not of recovery."""
    what = _words().GIVE_UPS.get(code)
    if what is None:
        return None
    told = what.format_map(_Lenient(params))
    why = _words().DIAGNOSES.get(str(params.get("category")))
    shown = told if why is None else _say("gave_up_why", what=told, why=why)
    return formatting.clean(shown)


def diagnosis(explanation: Mapping[str, Any] | None, category: Any) -> str:
    known = _words().DIAGNOSES
    code = str((explanation or {}).get("code"))
    why = str(known.get(code) or known.get(str(category)) or category or "")
    return wording.of_rank((explanation or {}).get("params") or {}, why) if why else why


def plan(given: Mapping[str, Any] | None) -> str:
    """`{code, params}` of a plan."""
    code, params = str((given or {}).get("code")), (given or {}).get("params") or {}
    template = _words().PLANS.get(code) or _words().GIVE_UPS.get(code)
    return code if template is None else str(template.format_map(_Lenient(params)))


def changes(given: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(_change(one) for one in given)


def story(told: Mapping[str, Any]) -> list[str]:
    """The failures so far, each with its proof and what was done; then what happens next."""
    lines: list[str] = []
    for failure in (told.get("failures") or [])[-_MOST_FAILURES:]:
        lines += _failure(failure)
    if not lines:
        return []
    what = _next(told)
    if what:
        lines.append(f"{_say('next')}: {what}")
    command = by_hand(told.get("reproduce") or {})
    if command:
        lines.append(f"{_say('again')}: {command}")
    return lines


def by_hand(given: Mapping[str, Any]) -> str:
    """The command as the failed attempt ran it, for a shell."""
    command = given.get("command")
    if not command:
        return ""
    text = command if isinstance(command, str) else shlex.join(map(str, command))
    env = given.get("env") or {}
    before = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in env.items())
    folder = given.get("working_dir")
    moved = f"cd {shlex.quote(str(folder))} && " if folder else ""
    return formatting.clean(f"{moved}{before} {text}" if before else f"{moved}{text}")


def _failure(failure: Mapping[str, Any]) -> list[str]:
    why = diagnosis(failure.get("explanation"), failure.get("category"))
    category = failure.get("failure_type")
    head = f"{_say('attempt', number=failure.get('attempt'))}: {why}"
    lines = [head + (f" ({category})" if category else "")]
    root = failure.get("root")
    if root:
        lines.append(f"  {_say('proof')}: {_line(root)}")
    if failure.get("changes"):
        lines.append(f"  {_say('changed')}: {formatting.clean(changes(failure['changes']))}")
    if failure.get("plan"):
        lines.append(f"  {_say('then')}: {formatting.clean(plan(failure['plan']))}")
    return lines + _resumed(failure.get("checkpoint") or {})


def _resumed(checkpoint: Mapping[str, Any]) -> list[str]:
    """What the next attempt went on from, and what was not whole."""
    if not checkpoint.get("path"):
        return []
    lines = [f"  {_say('resumed')}: {_checkpoint('checkpoint', checkpoint)}"]
    over = checkpoint.get("passed_over") or ()
    return lines + [
        f"  {_say('passed_over')}: {_checkpoint('bad_checkpoint', one)}" for one in over
    ]


def _checkpoint(key: str, one: Mapping[str, Any]) -> str:
    step = "?" if one.get("step") is None else one["step"]
    return formatting.clean(_say(key, path=one.get("path"), step=step, why=one.get("why")))


def downloads(told: Mapping[str, Any]) -> list[str]:
    """Those that went on where they had been cut off."""
    return [
        formatting.clean(
            _say(
                "download_resumed",
                name=one.get("name"),
                done=formatting.size(one.get("resumed_bytes") or 0),
                total=formatting.size(one.get("bytes") or 0),
            )
        )
        for one in told.get("downloads") or ()
    ]


def _line(root: Mapping[str, Any]) -> str:
    text = formatting.clean(str(root.get("text")))
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    key = "line_of_rank" if root.get("rank") else "line"
    if not root.get("number"):
        key = "kernel_line"
    return _say(key, rank=root.get("rank"), number=root.get("number"), text=text)


def _next(told: Mapping[str, Any]) -> str:
    given = told.get("next") or {}
    template = _words().NEXT.get(str(given.get("code")))
    if template is None:
        return ""
    params = dict(given.get("params") or {})
    if "at" in params:
        params["at"] = formatting.clock(params["at"])
    return str(template.format_map(_Lenient({**params, "job": told.get("job_id")})))


def _change(one: Mapping[str, Any]) -> str:
    key = "change"
    if one.get("before") is None:
        key = "added"
    elif one.get("after") is None:
        key = "removed"
    return _say(key, **{str(name): value for name, value in one.items()})


def _say(key: str, **params: Any) -> str:
    return str(_words().STORY[key].format_map(_Lenient(params)))
