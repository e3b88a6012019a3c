"""Every error becomes one shape, {code, message, params, request_id}; its class has the status."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from runyard.api.json_body import Json
from runyard.domain import errors

_FROM_STATUS: dict[int, type[errors.RunyardError]] = {
    400: errors.BadRequest,
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    413: errors.TooLarge,
    503: errors.Unavailable,
}


def problem(error: errors.RunyardError, request_id: str) -> Json:
    body = {
        "code": error.code,
        "message": error.message,
        "params": error.params,
        "request_id": request_id,
    }
    return Json(body, error.status, headers=_headers(error))


def _headers(error: errors.RunyardError) -> dict[str, str] | None:
    if isinstance(error, errors.Unauthenticated):
        return {"WWW-Authenticate": 'Bearer realm="runyard"'}
    if isinstance(error, errors.TooManyFailedLogins):
        return {"Retry-After": str(error.params.get("retry_after_s", 60))}
    if isinstance(error, errors.ShuttingDown):
        return {"Retry-After": "5"}
    return None


def add_handlers(app: FastAPI) -> None:
    # An error nobody foresaw is answered and logged in front.py, once.
    app.add_exception_handler(errors.RunyardError, _ours)
    app.add_exception_handler(HTTPException, _from_framework)
    app.add_exception_handler(RequestValidationError, _from_validation)


def _ours(request: Request, error: Exception) -> Json:
    assert isinstance(error, errors.RunyardError)
    return problem(error, request.scope["request_id"])


def _from_framework(request: Request, error: Exception) -> Json:
    assert isinstance(error, HTTPException)
    kind = _FROM_STATUS.get(error.status_code, errors.BadRequest)
    path, message = request.url.path, None
    if kind is errors.NotFound:
        message = f"There is nothing at {path}."
    elif kind is not errors.MethodNotAllowed:
        message = str(error.detail)
    found = kind(message, method=request.method, path=path)
    answer = problem(found, request.scope["request_id"])
    answer.status_code = error.status_code
    answer.headers.update(error.headers or {})
    return answer


def _from_validation(request: Request, error: Exception) -> Json:
    assert isinstance(error, RequestValidationError)
    fields = [_field(detail) for detail in error.errors()]
    said = "; ".join(f"{field['field']}: {field['message']}" for field in fields[:5])
    found = errors.InvalidRequest(f"The request is not valid. {said}.", fields=fields)
    return problem(found, request.scope["request_id"])


def _field(detail: dict[str, Any]) -> dict[str, str]:
    _, *place = detail["loc"]
    name = ".".join(str(part) for part in place) or str(detail["loc"][0])
    code = "missing" if detail["type"] == "missing" else "bad_value"
    return {"field": name, "code": code, "message": str(detail["msg"])}
