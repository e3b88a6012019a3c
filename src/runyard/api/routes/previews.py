"""What a submit would do, while somebody still writes the job."""

from __future__ import annotations

from typing import Any

import yaml
from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import asking, equivalents, page_answers
from runyard.api.describing import body_of
from runyard.api.json_body import Json, loads
from runyard.domain import errors, reasons
from runyard.engine.access.actor import Actor
from runyard.engine.yard import Yard
from runyard.wire import page_answers as shapes
from runyard.wire.jobs import read_job

router = APIRouter()

_MOST_YAML = 256 * 1024
_NOTHING: dict[str, Any] = {
    "valid": False,
    "problems": [],
    "warnings": [],
    "starts_now": False,
    "placement": None,
    "wait": None,
    "request": None,
    "suggestion": None,
    "job": None,
    "cli": None,
    "yaml": None,
}


@router.post(
    "/jobs/preview",
    operation_id="preview_job",
    response_model=shapes.PreviewAnswer,
    openapi_extra=body_of("JobSubmission"),
)
async def preview(request: Request) -> Response:
    """Would it start now, or wait for what? Nothing is kept. The body is a job as JSON, or a job
    file as `application/yaml`; what is wrong with it is an answer, not an error."""
    actor = asking.actor(request)
    actor.must_submit()
    data = await request.body()
    written = "yaml" in request.headers.get("content-type", "").lower()
    body: Any = None
    try:
        body = await run_in_threadpool(_from_yaml, data) if written else loads(data)
        found = await run_in_threadpool(_previewed, asking.yard(request), body, actor)
    except errors.BadRequest as error:
        job = body if isinstance(body, dict) else None
        found = {"problems": _problems(error), "job": job}
    return Json({**_NOTHING, **found})


def _previewed(yard: Yard, body: Any, actor: Actor) -> dict[str, Any]:
    asked = read_job(body)
    found = yard.pages.previews.of(asked.to_submission(), actor)
    names = {node.node_id: node.name for node in yard.nodes()}
    warnings = asked.warnings()
    if found.reason is not None and found.reason.code == reasons.NEVER_FITS:
        warnings.append({"code": found.reason.code, "params": found.reason.params})
    return {
        "valid": True,
        "warnings": warnings,
        **page_answers.preview(found, names),
        "job": body,
        "cli": equivalents.command_line(body),
        "yaml": equivalents.job_file(body),
    }


def _from_yaml(data: bytes) -> Any:
    if len(data) > _MOST_YAML:
        raise errors.TooLarge(limit_bytes=_MOST_YAML, size_bytes=len(data))
    try:
        text = data.decode()
        # A short text with aliases can stand for a very long one.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
            raise _wrong("aliases (*name) are not read here")
        found = yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise _wrong(where + str(getattr(error, "problem", None) or "is not YAML")) from None
    return found if found is not None else {}


def _wrong(message: str) -> errors.InvalidJob:
    problem = {"field": "yaml", "code": "bad_yaml", "message": message}
    return errors.InvalidJob(f"The job file cannot be read: {message}.", fields=[problem])


def _problems(error: errors.BadRequest) -> list[dict[str, Any]]:
    """One for each field that is wrong, whatever the kind of error."""
    fields = error.params.get("fields") or [{"field": _field_of(error)}]
    return [
        {
            "field": one["field"],
            "code": one.get("code") or error.code,
            "message": one.get("message") or error.message,
            "nearest": one.get("nearest"),
        }
        for one in fields
    ]


def _field_of(error: errors.BadRequest) -> str:
    named = {
        errors.UnknownDependency: "depends_on",
        errors.UnknownDataset: "dataset_ids",
        errors.JobTypeNotAvailable: "job_type",
    }
    return named.get(type(error)) or str(error.params.get("field", "job"))
