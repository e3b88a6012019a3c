"""Alert rules of people."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import asking, listing
from runyard.api.describing import body_of
from runyard.api.json_body import Json, iso, optional_object
from runyard.domain.monitoring.rules.rule import Rule
from runyard.engine.watch.rule_desk import Preview, Wish
from runyard.wire import requests
from runyard.wire import rules as shapes

router = APIRouter()

RuleRef = Annotated[str, Path(max_length=100, description="The rule's name, or its number.")]


def rule(found: Rule) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "expression": found.expression,
        "for": found.for_s,
        "level": found.level.value,
        "actions": [action.value for action in found.actions],
        "enabled": found.enabled,
        "broken": found.broken,
        "created_by": found.created_by,
        "created_at": iso(found.created_at),
    }


@router.get("/alert-rules", operation_id="list_rules", response_model=list[shapes.RuleAnswer])
def list_rules(request: Request) -> Response:
    """By name."""
    return Json([rule(one) for one in asking.yard(request).rule_desk.all()])


@router.post(
    "/alert-rules",
    status_code=201,
    operation_id="create_rule",
    response_model=shapes.RuleAnswer,
    openapi_extra=body_of("RuleRequest"),
)
async def create_rule(request: Request) -> Response:
    """A rule of an admin is for every job, another's for the jobs of the same owner."""
    actor = asking.actor(request)
    asked = requests.read(shapes.RuleRequest, await optional_object(request))
    wish = Wish(
        asked.name, asked.expression, asked.length, asked.level, asked.actions, asked.enabled
    )
    made = await run_in_threadpool(asking.yard(request).rule_desk.create, wish, actor)
    return Json(rule(made), 201)


# Before the ones with a name, which would take it for one.
@router.post(
    "/alert-rules/preview",
    operation_id="preview_rule",
    response_model=shapes.RulePreviewAnswer,
    openapi_extra=body_of("RulePreviewRequest"),
)
async def preview_rule(request: Request) -> Response:
    """When it would have fired, on what is known of jobs; nothing is kept."""
    asked = requests.read(shapes.RulePreviewRequest, await optional_object(request))
    job = None if asked.job is None else asking.job_ref(str(asked.job))
    since = None if asked.since is None else listing.moment("since", str(asked.since))
    found = await run_in_threadpool(
        asking.yard(request).rule_desk.preview, asked.expression, asked.length, job, since
    )
    return Json(_preview(found))


@router.get("/alert-rules/{rule_ref}", operation_id="get_rule", response_model=shapes.RuleAnswer)
def get_rule(request: Request, rule_ref: RuleRef) -> Response:
    return Json(rule(asking.yard(request).rule_desk.get(rule_ref)))


@router.put(
    "/alert-rules/{rule_ref}",
    operation_id="change_rule",
    response_model=shapes.RuleAnswer,
    openapi_extra=body_of("RuleChange"),
)
async def change_rule(request: Request, rule_ref: RuleRef) -> Response:
    """What is left out stays as it is."""
    actor = asking.actor(request)
    asked = requests.read(shapes.RuleChange, await optional_object(request))
    wish = Wish(
        asked.name, asked.expression, asked.length, asked.level, asked.actions, asked.enabled
    )
    desk = asking.yard(request).rule_desk
    return Json(rule(await run_in_threadpool(desk.change, rule_ref, wish, actor)))


@router.delete("/alert-rules/{rule_ref}", status_code=204, operation_id="delete_rule")
def delete_rule(request: Request, rule_ref: RuleRef) -> Response:
    """Alerts that it opened stay."""
    asking.yard(request).rule_desk.delete(rule_ref, asking.actor(request))
    return Response(status_code=204)


def _preview(found: Preview) -> dict[str, Any]:
    firings = [
        {"job_id": ref, "since": iso(one.since), "at": iso(one.at), "until": iso(one.until)}
        for ref, one in found.firings
    ]
    return {
        "expression": found.expression,
        "for": found.for_s,
        "times": len(firings),
        "firings": firings,
        "jobs": list(found.jobs),
        "unknown": list(found.unknown),
    }
