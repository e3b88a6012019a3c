"""What is said about a body that does not fit: every field, each with a code and a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from runyard.domain import errors
from runyard.domain.nearest_name import nearest

Kind = type[errors.InvalidJob] | type[errors.InvalidRequest]


def from_pydantic(
    error: ValidationError, kind: Kind, names: Sequence[str], where: str = ""
) -> errors.BadRequest:
    """UnknownField if there is an unknown one, else `kind` with all that is wrong. `names` are the
    right ones; `where` is put before the names of fields."""
    found = error.errors(include_url=False, include_input=False)
    unknown = [detail for detail in found if detail["type"] == "extra_forbidden"]
    if unknown:
        # What is missing is most likely what was misspelt.
        others = [one for one in found if one["type"] not in ("extra_forbidden", "missing")]
        besides = [_problem(detail, where) for detail in others]
        return _unknown_field(unknown, names, where, besides)
    return refusal(kind, [_problem(detail, where) for detail in found])


def _unknown_field(
    found: Sequence[ErrorDetails],
    names: Sequence[str],
    where: str,
    besides: Sequence[dict[str, str]],
) -> errors.UnknownField:
    fields = []
    for error in found:
        *above, name = error["loc"]
        known = names if not above else _NESTED
        elsewhere = _ELSEWHERE_NESTED if above else _ELSEWHERE
        meant = elsewhere.get(str(name).lower()) or nearest(str(name), known)
        fields.append({"field": where + _dotted(error["loc"]), "nearest": meant})
    said = [_no_such(one) for one in fields[:5]]
    said += [f"{one['field']}: {one['message']}." for one in besides[:5]]
    return errors.UnknownField(" ".join(said), **fields[0], fields=fields, besides=besides)


def _no_such(found: Mapping[str, str | None]) -> str:
    told, meant = f"There is no field '{found['field']}'.", found["nearest"]
    return f"{told} Did you mean '{meant}'?" if meant else told


_NESTED = (
    *("array_id", "index", "limit", "status", "type", "owner", "q", "label"),
    *("url", "secret", "events"),
    *("nodes", "procs_per_node", "launcher", "placement", "gang_grace_s", "finish_skew_s"),
)
# Names that mean the same in other schedulers' job files but look too different to be near.
_ELSEWHERE = {
    "env": "env_vars",
    "envs": "env_vars",
    "environment": "env_vars",
    "cmd": "command",
    "run": "command",
    "entrypoint": "command",
    "script": "command",
    "workdir": "working_dir",
    "cwd": "working_dir",
    "cpus": "cpu_cores",
    "num_cpus": "cpu_cores",
    "mem": "memory_gb",
    "memory": "memory_gb",
    "gpus": "gpu_count",
    "num_gpus": "gpu_count",
    "time": "timeout_s",
    "time_limit": "timeout_s",
    "timeout": "timeout_s",
    "tags": "labels",
    "dependencies": "depends_on",
    "retries": "max_retries",
    "type": "job_type",
    "container": "image",
    "nodes": "distributed.nodes",
    "nnodes": "distributed.nodes",
    "num_nodes": "distributed.nodes",
    "procs_per_node": "distributed.procs_per_node",
    "nproc_per_node": "distributed.procs_per_node",
    "launcher": "distributed.launcher",
}
_ELSEWHERE_NESTED = {
    "nnodes": "nodes",
    "num_nodes": "nodes",
    "nproc_per_node": "procs_per_node",
    "gpus_per_node": "procs_per_node",
    "ntasks_per_node": "procs_per_node",
    "world_size": "procs_per_node",
    "strategy": "placement",
}


def refusal(kind: Kind, fields: list[dict[str, str]]) -> errors.BadRequest:
    said = "; ".join(f"{found['field']}: {found['message']}" for found in fields[:5])
    return kind(f"{kind.text} {said}.", fields=fields)


def _problem(error: ErrorDetails, where: str) -> dict[str, str]:
    kind, context = error["type"], error.get("ctx", {})
    place = where + _dotted(error["loc"])
    code, words = _WORDS.get(kind, ("", ""))
    ours = kind == "too_long" and not context  # a word that pydantic uses too
    if code and not ours:
        return field(place, code, words.format_map(context))
    if kind != "wrong_type" and kind.endswith(("_type", "_parsing", "_from_float")):
        return field(place, "wrong_type", f"must be {_kind_of(kind)}")
    return field(place, kind, error["msg"])


_WORDS = {
    "missing": ("missing", "is needed"),
    "greater_than": ("out_of_range", "must be above {gt}"),
    "greater_than_equal": ("out_of_range", "must be at least {ge}"),
    "less_than": ("out_of_range", "must be below {lt}"),
    "less_than_equal": ("out_of_range", "must be at most {le}"),
    "finite_number": ("out_of_range", "must be a finite number"),
    "enum": ("bad_value", "must be {expected}"),
    "literal_error": ("bad_value", "must be {expected}"),
    "too_long": ("out_of_range", "has more than {max_length} entries"),
}


def _kind_of(kind: str) -> str:
    words = {
        "int": "a whole number",
        "float": "a number",
        "bool": "true or false",
        "list": "a list",
    }
    return words.get(kind.split("_")[0], "of another type")


def field(name: str, code: str, message: str) -> dict[str, str]:
    return {"field": name, "code": code, "message": message}


def _dotted(place: tuple[int | str, ...]) -> str:
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
