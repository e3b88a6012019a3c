"""Datasets that jobs name by their numbers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import asking, repair_answers
from runyard.api.describing import body_of
from runyard.api.json_body import Json, optional_object
from runyard.wire import requests
from runyard.wire.datasets import DatasetRequest
from runyard.wire.repair_answers import DatasetAnswer

router = APIRouter()

DatasetRef = Annotated[str, Path(max_length=100, description="The dataset's number, or its name.")]


@router.get("/datasets", operation_id="list_datasets", response_model=list[DatasetAnswer])
def list_datasets(request: Request) -> Response:
    """By name."""
    found = asking.yard(request).dataset_desk.all()
    return Json([repair_answers.dataset(one) for one in found])


@router.post(
    "/datasets",
    status_code=201,
    operation_id="create_dataset",
    response_model=DatasetAnswer,
    openapi_extra=body_of("DatasetRequest"),
)
async def create_dataset(request: Request) -> Response:
    """Nothing is fetched before a job needs it."""
    actor = asking.actor(request)
    asked = requests.read(DatasetRequest, await optional_object(request))
    desk = asking.yard(request).dataset_desk
    made = await run_in_threadpool(desk.create, asked.to_new(), actor)
    return Json(repair_answers.dataset(made), 201)


@router.get("/datasets/{dataset_ref}", operation_id="get_dataset", response_model=DatasetAnswer)
def get_dataset(request: Request, dataset_ref: DatasetRef) -> Response:
    return Json(repair_answers.dataset(asking.yard(request).dataset_desk.get(dataset_ref)))


@router.delete("/datasets/{dataset_ref}", status_code=204, operation_id="delete_dataset")
def delete_dataset(request: Request, dataset_ref: DatasetRef) -> Response:
    """Jobs that were submitted with it are not affected."""
    asking.yard(request).dataset_desk.delete(dataset_ref, asking.actor(request))
    return Response(status_code=204)
