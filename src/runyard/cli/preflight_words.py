"""What the checks before a start found, in the reader's language."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from runyard.cli import formatting, wording

_SIZES = ("free_bytes", "needed_bytes", "size_bytes", "checkpoint_bytes")


def reason(code: str, params: Mapping[str, Any]) -> str:
    """Of a job that is being checked, or was not started because of it."""
    if code == "preparing":
        return _words()["checking"]
    what = finding({"code": params.get("code"), "params": params.get("params")})
    return _words()["failed"].format(what=what)


def finding(found: Mapping[str, Any]) -> str:
    code, params = str(found.get("code")), dict(found.get("params") or {})
    template = _words().get(code)
    if template is None:
        told = ", ".join(f"{name} {value}" for name, value in params.items())
        return formatting.clean(f"{code} ({told})" if told else code)
    for name in _SIZES:
        if isinstance(params.get(name), (int, float)):
            params[name] = formatting.size(float(params[name]))
    if code in ("module_missing", "module_maybe_missing"):
        params["names"] = ", ".join(map(str, params.get("names") or ()))
        params["where"] = _where(params)
    if code == "syntax_error":
        params["where"] = _where(params)
    if code == "interpreter_broken":
        params["said"] = _ended(params)
    return formatting.clean(template.format_map(_Lenient(params)))


def worth_telling(report: Mapping[str, Any] | None) -> list[str]:
    """What a person should know: all that failed, then all that is only doubtful."""
    checks = [one for one in (report or {}).get("checks") or () if isinstance(one, dict)]
    return [
        finding(one)
        for verdict in ("fail", "warn")
        for one in checks
        if one.get("verdict") == verdict
    ]


class _Lenient(dict[str, Any]):
    """An older client may meet a newer server's parameters."""

    def __missing__(self, key: str) -> str:
        return "?"


def _words() -> dict[str, str]:
    found = importlib.import_module(f"runyard.cli.words.preflight_{wording.language()}")
    return dict(found.FINDINGS)


def _where(params: Mapping[str, Any]) -> str:
    path, line = params.get("path"), params.get("line")
    if not path:
        return "-m"
    return f"{path}:{line}" if line else str(path)


def _ended(params: Mapping[str, Any]) -> str:
    if params.get("said"):
        return str(params["said"])
    if params.get("signal"):
        return formatting.signal_name(params["signal"])
    return str(params.get("exit_code"))
