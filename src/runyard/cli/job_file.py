"""Job files: YAML or JSON, with the API's fields (the server says which name was misspelt)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from runyard.cli import amounts
from runyard.cli.complaints import Complaint


def read(path: str) -> list[dict[str, Any]]:
    """The jobs of a file (`-` is stdin): one mapping, a list of them, or several documents."""
    text = sys.stdin.read() if path == "-" else _text(path)
    jobs: list[dict[str, Any]] = []
    for document in _documents(text, path):
        for job in document if isinstance(document, list) else [document]:
            if not isinstance(job, dict):
                raise Complaint(f"{path}: a job is a mapping of fields, not {type(job).__name__}.")
            jobs.append(amounts.fields_as_numbers(job, path))
    if not jobs:
        raise Complaint(f"{path}: there is no job in it.")
    return jobs


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Complaint(f"There is no file {path}.") from None
    except UnicodeDecodeError as error:
        raise Complaint(f"{path} is not UTF-8 text (byte {error.start}).") from None


def _documents(text: str, path: str) -> list[Any]:
    # JSON is tried first: loading yaml costs more than all the rest of a submit.
    if text.lstrip()[:1] in ("{", "["):
        try:
            return [json.loads(text)]
        except ValueError:
            pass  # a YAML flow mapping looks the same
    import yaml

    try:
        return [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        why = getattr(error, "problem", None) or str(error)
        raise Complaint(f"{path}{where}: this is neither YAML nor JSON ({why}).") from None
