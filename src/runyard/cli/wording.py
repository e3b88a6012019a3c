"""Codes into sentences in the reader's language: RUNYARD_LANG, LC_ALL, LC_MESSAGES or LANG."""

from __future__ import annotations

import functools
import importlib
import math
import os
from collections.abc import Mapping
from typing import Any

from runyard.cli import formatting


class _Lenient(dict[str, Any]):
    """An older client may meet a newer server's parameters: say "?" instead of falling over."""

    def __missing__(self, key: str) -> str:
        return "?"


@functools.cache
def language() -> str:
    for name in ("RUNYARD_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def say(key: str, /, **params: Any) -> str:
    return str(_words().MESSAGES[key]).format_map(_Lenient(params))


def status(word: str) -> str:
    """The eight words stay as they are in English, so that people can search for them."""
    return str(_words().STATUSES.get(word, word))


def reason(given: Mapping[str, Any] | None) -> str:
    """`{code, params}` as a sentence; an unknown code as it is, with its parameters."""
    if not given or not given.get("code"):
        return ""
    code, params = str(given["code"]), dict(given.get("params") or {})
    if params.get("stage") == "preflight" and code in ("preparing", "preparation_failed"):
        from runyard.cli import preflight_words  # which asks this module for the language

        return preflight_words.reason(code, params)
    # A job of several nodes may need more of them than there are, or larger ones.
    worded = "never_fits_nodes" if code == "never_fits" and "each" in params else code
    if code == "start_failed" and params.get("step") in ("container", "pull"):
        worded = f"{code}_{params['step']}"
    template = _words().REASONS.get(worded)
    if template is None:
        from runyard.cli import repair_words  # which asks this module for the language

        given_up = repair_words.reason(code, params)
        if given_up is not None:
            return given_up
        told = ", ".join(f"{name} {value}" for name, value in params.items())
        return f"{code} ({told})" if told else code
    said = formatting.clean(template.format_map(_Lenient(_readable(code, params))))
    if code != "rank_lagged":
        said = of_rank(params, said)
    if code == "executor_unavailable":
        return said + _unavailable(params)
    pulled = code == "starting_container" and params.get("bytes_done") is not None
    return f"{said}: {_preparing(params)}" if pulled else said


def of_rank(params: Mapping[str, Any], why: str) -> str:
    """Why an attempt of several ranks failed, with the one that did first."""
    rank = params.get("rank")
    return why if rank is None else say("rank_first", rank=rank, why=why)


def _unavailable(params: Mapping[str, Any]) -> str:
    """Why an executor cannot be reached, where the server knows it."""
    key = f"unavailable_{params.get('why') or 'not_offered'}"
    if key not in _words().MESSAGES:
        return f" ({params['why']})"
    return f" ({say(key, at=params.get('at', ''))})"


def alert(given: Mapping[str, Any]) -> str:
    """What an alert says; an unknown code as it is, with its parameters."""
    code, params = str(given.get("code")), dict(given.get("params") or {})
    template = _words().ALERTS.get(code)
    if template is None:
        return reason({"code": code, "params": params})
    said = formatting.clean(template.format_map(_Lenient(_readable(code, params))))
    unread = (given.get("evidence") or {}).get("stacks_unread")
    return f"{said}; {say('stacks_unread')}" if unread else said


def delivery_error(given: Mapping[str, Any] | None) -> str:
    """Why a notification did not arrive."""
    template = _words().DELIVERY_ERRORS.get(str((given or {}).get("code")))
    if template is None or given is None:
        return reason(given)
    return formatting.clean(template.format_map(_Lenient(given.get("params") or {})))


def warning(given: Mapping[str, Any]) -> str:
    """What a server accepted but says it will not, or cannot, act on."""
    template = _words().WARNINGS.get(str(given.get("code")))
    if template is None:
        return reason(given)
    return str(template).format_map(_Lenient(given.get("params") or {}))


def error(code: str, params: Mapping[str, Any], fallback: str) -> str:
    """The error in the reader's language. In English the server's own message says most."""
    template = _words().ERRORS.get(code)
    if template is None or (language() == "en" and fallback):
        return fallback or code
    if any(f"{{{name}}}" in template and name not in params for name in _names(template)):
        return fallback
    return str(template).format_map(_Lenient(params))


def _words() -> Any:
    return importlib.import_module(f"runyard.cli.words.{language()}")


def _names(template: str) -> list[str]:
    import string

    return [name for _, name, _, _ in string.Formatter().parse(template) if name]


def _readable(code: str, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters that are lists, times or amounts, as text."""
    plain = {name: _value(value) for name, value in params.items()}
    return plain | _by_name(params) | _by_code(code, params)


def _by_name(params: dict[str, Any]) -> dict[str, str]:
    """Those that mean the same whatever they are told with."""
    words, shown = _words(), {}
    if isinstance(params.get("each"), dict):
        shown["each"] = _each(params["each"], words)
    if params.get("left_s") is not None:
        shown["left"] = f"{math.ceil(float(params['left_s']))} s"
    for name in ("seconds", "lease_s", "budget_s", "exhausted_in_s", "full_in_s"):
        if isinstance(params.get(name), (int, float)):
            shown[name] = formatting.span(float(params[name]))
        elif name in params:
            shown[name] = "?"
    if isinstance(params.get("values"), dict):
        shown["values"] = ", ".join(f"{name} {value}" for name, value in params["values"].items())
    for name in ("processes", "holders"):
        if isinstance(params.get(name), list):
            shown[name] = ", ".join(map(process, params[name])) or words.MESSAGES["nobody"]
    return shown


def _by_code(code: str, params: dict[str, Any]) -> dict[str, str]:
    words, gpus = _words(), params.get("gpus") or ()
    match code:
        case "dependency":
            return {"jobs": ", ".join(map(_dependency, params.get("jobs") or ()))}
        case "retry_delay":
            until = formatting.clock(params.get("until"))
            return {"until": until, "cause": _cause(params.get("cause"))}
        case "stopping":
            return {"cause": _cause(params.get("cause"))}
        case "waiting_for_space":
            return {name: _bytes(params.get(f"{name}_bytes")) for name in ("free", "wanted")}
        case "gpus_avoided":
            fenced = ", ".join(map(str, params.get("fenced") or ()))
            told = say("gpus_fenced", gpus=fenced) if fenced else ""
            return {"gpus": ", ".join(map(str, gpus)), "fenced": told}
        case "gpus_held_elsewhere":
            return {"gpus": ", ".join(_held(gpu, words) for gpu in gpus)}
        case "gpu_memory_held":
            return {"gpus": ", ".join(map(_held_gpu, gpus))}
        case "not_enough" | "never_fits" | "gate":
            return _of_resource(code, params)
        case "timed_out" | "rank_lagged" if params.get("limit_s") is not None:
            return {"limit_s": formatting.span(float(params["limit_s"]))}
        case "preparing" | "pulling_image":
            return {"what": _preparing(params)}
        case "preparation_failed":
            return {"what": _preparation_failure(params)}
        case "service_failed":
            return {"what": _service_failure(params)}
        case "retries_used_up":
            return {"last": reason(params.get("last")) or "?"}
    return {}


def _of_resource(code: str, params: dict[str, Any]) -> dict[str, str]:
    kind = str(params.get("resource") or params.get("gate") or "")
    noun = _words().NOUNS.get(kind, kind)
    names = () if code == "gate" else ("wanted", "free", "total", "largest")
    amounts = {name: _amount(kind, params[name]) for name in names if name in params}
    return {"resource": noun, "gate": noun, **amounts}


def _bytes(count: Any) -> str:
    return "?" if count is None else formatting.size(float(count))


def _value(value: Any) -> str:
    if isinstance(value, float):
        return formatting.number(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_value, value))
    return str(value)


def _cause(value: Any) -> str:
    if isinstance(value, dict):
        return reason(value)
    nouns = _words().NOUNS
    return str(nouns.get(f"cause_{value}") or nouns.get(str(value), value))


def _preparing(params: Mapping[str, Any]) -> str:
    """How far a download is, or when it is tried again and what went wrong before."""
    if params.get("until") is not None:
        last = _preparation_failure(params.get("last") or {})
        return say("preparing_again", at=formatting.clock(params["until"]), last=last)
    done, total = params.get("bytes_done"), params.get("bytes_total")
    if done is None:
        return say("preparing_begun")
    so_far = formatting.size(float(done))
    if not total:
        return say("preparing_some", done=so_far)
    percent = f"{100 * float(done) / float(total):.0f} %"
    return say("preparing_of", done=so_far, total=formatting.size(float(total)), percent=percent)


def _preparation_failure(params: Mapping[str, Any]) -> str:
    known = f"fetch_{params.get('code')}"
    key = known if known in _words().MESSAGES else "fetch_failed"
    details = params.get("params")
    shown = {**(details if isinstance(details, dict) else {}), **params}
    return say(key, **{name: value for name, value in shown.items() if value is not None})


def _service_failure(params: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in params.items() if value is not None}
    code = shown.pop("code", "exited")
    if "ready_timeout_s" in shown:
        shown["ready_timeout_s"] = formatting.span(float(shown["ready_timeout_s"]))
    if "signal" in shown:
        shown["signal"] = formatting.signal_name(shown["signal"])
    how = say("service_signal" if "signal" in shown else "service_exited", **shown)
    known = f"service_{code}" in _words().MESSAGES and code != "exited"
    what = say(f"service_{code}", how=how, **shown) if known else how
    line = shown.get("line")
    return say("service_last_line", what=what, line=line) if line else what


def _dependency(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    state = status(str(item["status"])) if item.get("status") else ""
    return f"{item.get('job')} ({state})" if state else str(item.get("job"))


def process(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    told = {name: value or "?" for name, value in item.items()}
    return say("holder", **told)


def _held_gpu(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    who = ", ".join(
        f"{holder.get('user')}, pid {holder.get('pid')}, {holder.get('name')}"
        for holder in item.get("holders") or ()
        if isinstance(holder, dict)
    )
    return f"GPU {item.get('index')}: {item.get('used_mb')} MB" + (f" ({who})" if who else "")


def _held(item: Any, words: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    holder = item.get("holder")
    if isinstance(holder, dict):
        who = f"{holder.get('user')}, pid {holder.get('pid')}, {holder.get('name')}"
    else:
        who = str(words.MESSAGES["another_server"] if holder in (None, "server") else holder)
    return f"GPU {item.get('index')}: {who}"


def _each(wanted: Mapping[str, Any], words: Any) -> str:
    """What every node must have: 4 GPUs (H100), 8 CPU cores, 64 GB memory."""
    told = []
    for kind in ("gpu", "cpu", "memory", "port"):
        if kind in wanted:
            kept = f" ({wanted['gpu_type']})" if kind == "gpu" and "gpu_type" in wanted else ""
            told.append(f"{_amount(kind, wanted[kind])} {words.NOUNS[kind]}{kept}")
    return ", ".join(told)


def _amount(kind: str, value: Any) -> str:
    if not isinstance(value, (int, float)):
        return str(value)
    if kind == "memory":
        return formatting.gigabytes(value)
    return formatting.number(value)
