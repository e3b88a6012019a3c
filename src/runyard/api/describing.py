"""The OpenAPI page: bodies that routes read by themselves, and one shape for every error."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from runyard.wire import datasets, drills, notify_targets, requests, rules, sessions
from runyard.wire.answers import Problem
from runyard.wire.jobs import JobSubmission

_BODIES = (
    JobSubmission,
    requests.BatchSubmission,
    requests.CancelMany,
    requests.RetryRequest,
    requests.EnqueueRequest,
    requests.FenceRequest,
    requests.KeyRequest,
    *rules.BODIES,
    *notify_targets.BODIES,
    *datasets.BODIES,
    drills.DrillRequest,
    *sessions.BODIES,
)
_REFERENCE = "#/components/schemas/{model}"


def body_of(name: str, *, required: bool = True) -> dict[str, Any]:
    schema = {"$ref": _REFERENCE.format(model=name)}
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": required, "content": content}}


def describe(app: FastAPI) -> dict[str, Any]:
    """Made once, at the first look."""
    if app.openapi_schema is None:
        page = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        _, found = models_json_schema(
            [(model, "validation") for model in _BODIES], ref_template=_REFERENCE
        )
        components = page.setdefault("components", {})
        components.setdefault("schemas", {}).update(found["$defs"])
        components["securitySchemes"] = {
            "key": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in": "cookie", "name": "runyard_session"},
        }
        page["security"] = [{"key": []}, {"session": []}]
        app.openapi_schema = page
    return app.openapi_schema


ERRORS: dict[int | str, dict[str, Any]] = {
    "default": {"model": Problem, "description": "What went wrong."}
}
