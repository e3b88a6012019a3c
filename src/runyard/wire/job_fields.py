"""What each field of a job accepts, what it becomes, and what is said when it does not fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NoReturn

from pydantic_core import PydanticCustomError

from runyard.prefetch import addresses, failures

MAX_NAME = 200
# The kernel takes no single argument or variable longer than this.
MAX_ARGUMENT_BYTES = 128 * 1024 - 1
MAX_PATH = 4096
MAX_PORTS = 1000
MAX_DEPENDENCIES = 1000
BASE_ENV_NAMES = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH")
PLACEHOLDERS = ("resume_from", "output_dir", "checkpoint_dir")

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PORT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_LABEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,62}")
_SERVICE_URL = re.compile(
    r"https?://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_JOB_REF = re.compile(r"job-[a-z0-9]{1,64}|[0-9]{1,18}")


def refuse(code: str, message: str) -> NoReturn:
    # Braces in `message` would be taken for placeholders.
    raise PydanticCustomError(code, message.replace("{", "{{").replace("}", "}}"))


def not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        refuse("wrong_type", "must be a number, not true or false")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        refuse("wrong_type", "must be a string")
    return value


def _one_line(value: Any, longest: int) -> str:
    text = _string(value).strip()
    if not text:
        refuse("empty", "must not be empty")
    if len(text) > longest:
        refuse("too_long", f"must be at most {longest} characters, and has {len(text)}")
    if _CONTROL.search(text):
        refuse("control_characters", "must not hold line breaks or other control characters")
    return text


def _no_nul(text: str) -> str:
    if "\0" in text:
        refuse("nul_character", "must not hold a NUL character")
    return text


def name(value: Any) -> str:
    return _one_line(value, MAX_NAME)


def description(value: Any) -> str:
    text = _no_nul(_string(value))
    if len(text) > 100_000:
        refuse("too_long", "must be at most 100000 characters")
    return text


def command(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, str):
        if not value.strip():
            refuse("empty", "must not be empty")
        return _argument(value)
    if not isinstance(value, list | tuple):
        refuse("wrong_type", "must be a string, or a list of strings")
    words = tuple(_word(word) for word in value)
    if not words or not words[0]:
        refuse("empty", "must not be empty")
    return words


def _word(value: Any) -> str:
    if isinstance(value, bool):
        refuse("wrong_type", "holds true or false: put it in quotes")
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        refuse("wrong_type", "must be a string, or a list of strings")
    return _argument(value)


def _argument(text: str) -> str:
    if len(text) > MAX_ARGUMENT_BYTES // 4 and len(text.encode()) > MAX_ARGUMENT_BYTES:
        refuse("too_long", f"holds more than {MAX_ARGUMENT_BYTES} bytes in one argument")
    return _no_nul(text)


def env_vars(value: Any) -> dict[str, str]:
    found = {}
    for key, item in _pairs(value):
        if not isinstance(key, str) or not _IDENTIFIER.fullmatch(key):
            refuse("bad_name", f"{key!r} is not a name for an environment variable")
        if key.startswith("RUNYARD_"):
            refuse("reserved_name", f"{key}: names that begin with RUNYARD_ are set by Runyard")
        found[key] = _argument(_scalar(key, item))
    return found


def _pairs(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        for entry in value:
            if not isinstance(entry, str) or "=" not in entry:
                refuse("wrong_type", "a list must hold strings like NAME=value")
            yield tuple(entry.split("=", 1))  # type: ignore[misc]
    else:
        refuse("wrong_type", "must be an object of names and values")


def _scalar(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return str(value)
    refuse("wrong_type", f"{key}: must be a string, a number, true or false")


def base_env(value: Any) -> dict[str, str]:
    found = {}
    for key, item in _pairs(value):
        if key not in BASE_ENV_NAMES:
            refuse("bad_name", f"{key!r}: only {', '.join(BASE_ENV_NAMES)} can be sent")
        found[key] = _argument(_string(item))
    return found


def params(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        refuse("wrong_type", "must be an object of names and values")
    seen: dict[str, str] = {}
    for key in value:
        if not isinstance(key, str) or not _IDENTIFIER.fullmatch(key):
            refuse("bad_name", f"{key!r} is not a name: letters, digits and _ only")
        if key in PLACEHOLDERS:
            refuse("reserved_name", f"{key} is filled in by Runyard")
        other = seen.setdefault(key.upper(), key)
        if other != key:
            refuse("duplicate", f"{other} and {key} would both become RUNYARD_PARAM_{key.upper()}")
    return kept(value)  # type: ignore[no-any-return]


def kept(value: Any) -> Any:
    """As it was sent, once no text in it holds a NUL, which not every store can keep."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            _no_nul(item)
        elif isinstance(item, dict):
            todo += item.keys()
            todo += item.values()
        elif isinstance(item, list):
            todo += item
    return value


def kept_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        refuse("wrong_type", "must be an object")
    return kept(value)  # type: ignore[no-any-return]


def labels(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        refuse("wrong_type", "must be an object of names and values")
    found = {}
    for key, item in value.items():
        if not isinstance(key, str) or not _LABEL_NAME.fullmatch(key):
            refuse("bad_name", f"{key!r} is not a name for a label")
        text = _scalar(key, item)
        if len(text) > MAX_NAME or _CONTROL.search(text):
            refuse("bad_value", f"{key}: at most {MAX_NAME} characters on one line")
        found[key] = text
    return found


def ports(value: Any) -> int | tuple[str, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= MAX_PORTS:
            refuse("out_of_range", f"must be between 0 and {MAX_PORTS}")
        return value
    if not isinstance(value, list | tuple):
        refuse("wrong_type", "must be a number, or a list of names")
    seen = set()
    for item in value:
        if not isinstance(item, str) or not _PORT_NAME.fullmatch(item):
            refuse("bad_name", f"{item!r} is not a name for a port")
        variable = item.upper().replace("-", "_")
        if variable in seen:
            refuse("duplicate", f"two ports would both become RUNYARD_PORT_{variable}")
        seen.add(variable)
    if len(seen) > MAX_PORTS:
        refuse("out_of_range", f"at most {MAX_PORTS} ports")
    return tuple(value)


def service_name(value: Any) -> str:
    if not isinstance(value, str) or not _PORT_NAME.fullmatch(value):
        refuse("bad_name", f"{value!r} is not a name for a service")
    return value


def service_url(value: Any) -> str:
    """Where a service that the client runs is reached: `http://HOST:PORT`."""
    text = _one_line(value, MAX_NAME).rstrip("/")
    found = _SERVICE_URL.fullmatch(text)
    if found is None or not 1 <= int(found["port"]) <= 65535:
        refuse("bad_value", "must be an address such as http://127.0.0.1:8000")
    return text


def health(value: Any) -> str:
    """`tcp`, or a path that answers 2xx or 3xx once the service is ready."""
    text = _one_line(value, MAX_NAME)
    if text.lower() == "tcp":
        return "tcp"
    if not text.startswith("/") or " " in text:
        refuse("bad_value", 'must be "tcp" or a path such as /health')
    return text


def depends_on(value: Any) -> tuple[tuple[str, Literal["success", "end"]], ...]:
    entries = value if isinstance(value, list | tuple) else [value]
    if len(entries) > MAX_DEPENDENCIES:
        refuse("out_of_range", f"at most {MAX_DEPENDENCIES} jobs")
    return tuple(dict.fromkeys(_dependency(entry) for entry in entries))


def _dependency(entry: Any) -> tuple[str, Literal["success", "end"]]:
    on = "success"
    if isinstance(entry, dict):
        unknown = set(entry) - {"job", "on"}
        if unknown or "job" not in entry:
            refuse("wrong_type", "an object here has 'job' and, if wanted, 'on'")
        on, entry = entry.get("on", "success"), entry["job"]
    if isinstance(entry, bool) or not isinstance(entry, str | int):
        refuse("wrong_type", "must be a list of job ids, or of objects with 'job' and 'on'")
    if on == "success":
        return str(entry), "success"
    if on == "end":
        return str(entry), "end"
    refuse("bad_value", "'on' is success or end")


def absolute_path(value: Any) -> str:
    text = _path(value)
    if not text.startswith("/"):
        refuse("not_absolute", "must be an absolute path")
    return text


def path(value: Any) -> str:
    return _path(value)


def _path(value: Any) -> str:
    text = _no_nul(_string(value))
    if not text:
        refuse("empty", "must not be empty")
    if len(text) > MAX_PATH:
        refuse("too_long", f"must be at most {MAX_PATH} characters")
    return text


def gpu_count(value: float) -> float:
    if 0 < value < 0.001:
        refuse("out_of_range", "the smallest share of a GPU is 0.001")
    if value > 1 and value != int(value):
        refuse("not_whole", "must be a whole number, or a share below 1 of one GPU")
    return value


def lowered(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


_BAD_ADDRESS = {
    "unprintable": "has signs that cannot be seen",
    "malformed": "is not an address",
    "scheme": "must begin with hf://, https://, http://, s3:// or file://",
    "name": "leaves open what it is called: add #a-name",
    "query": "an address of the hub has no ?",
    "spaces": "models and datasets of the hub can be fetched, spaces cannot",
    "revision": "what follows @ is not a revision",
    "repo": "what follows hf:// is not a repository, as in hf://owner/name",
    "path": "the path inside the repository is not plain",
    "host": "names no host",
    "bucket": "what follows s3:// is not a bucket",
    "key": "has control characters in it",
    "file_path": "must be a whole path of this machine, as in file:///data/set",
}


def prefetch(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        refuse("wrong_type", "must be a list of addresses")
    names: dict[str, str] = {}
    for uri in value:
        try:
            _, name = addresses.parse(_no_nul(uri))
        except failures.Failure as failure:
            why = _BAD_ADDRESS.get(str(failure.params.get("reason")), "cannot be fetched")
            refuse("bad_uri", f"{addresses.masked(uri)}: {why}")
        if names.setdefault(name, uri) != uri:
            refuse("duplicate", f"two addresses would both be called {name}: add #another-name")
    return kept(value)  # type: ignore[no-any-return]


def is_job_ref(text: str) -> bool:
    """Whether it can be a job's public or numeric id at all."""
    return _JOB_REF.fullmatch(text) is not None


def default_name(asked: str | tuple[str, ...]) -> str:
    text = asked if isinstance(asked, str) else " ".join(asked)
    text = " ".join(_CONTROL.sub(" ", text[:1000]).split())
    return (text if len(text) <= 60 else text[:59] + "…") or "job"
