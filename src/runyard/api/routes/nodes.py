"""Nodes and their GPUs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from runyard.api import asking
from runyard.api.describing import body_of
from runyard.api.json_body import Json, iso, optional_object
from runyard.stores.base_machines import Node
from runyard.wire import machine_answers as shapes
from runyard.wire import requests

router = APIRouter()


def node_answer(node: Node) -> dict[str, Any]:
    return {
        "node_id": node.node_id,
        "name": node.name,
        "machine_id": node.machine_id,
        "url": node.url,
        "epoch": node.epoch,
        "cpu_cores": node.capacity.cpu_milli / 1000,
        "memory_gb": round(node.capacity.memory_mb / 1024, 3),
        "gpu_count": len(node.capacity.gpus),
        "load": asdict(node.load) if node.load else None,
        "executors": node.executors,
        "drained": node.drained,
        "heartbeat_at": iso(node.heartbeat_at),
        "kind": node.kind,
        "address": node.address,
        "labels": dict(node.labels),
        "alive": node.alive,
        "cluster": node.cluster,
    }


@router.get("/nodes", operation_id="list_nodes", response_model=list[shapes.NodeAnswer])
def list_nodes(request: Request) -> Response:
    return Json([node_answer(node) for node in asking.yard(request).nodes()])


@router.post("/nodes/{node_id}/drain", operation_id="drain_node", response_model=shapes.NodeAnswer)
def drain(request: Request, node_id: str) -> Response:
    """Start nothing more on this node; what runs there is left alone."""
    return Json(node_answer(asking.yard(request).drain(node_id, asking.admin(request))))


@router.post(
    "/nodes/{node_id}/undrain", operation_id="undrain_node", response_model=shapes.NodeAnswer
)
def undrain(request: Request, node_id: str) -> Response:
    return Json(node_answer(asking.yard(request).undrain(node_id, asking.admin(request))))


@router.get("/gpus", operation_id="list_gpus", response_model=list[shapes.GpuAnswer])
def list_gpus(request: Request) -> Response:
    return Json([asdict(gpu) for gpu in asking.yard(request).gpus()])


@router.post(
    "/gpus/{gpu}/fence",
    operation_id="fence_gpu",
    response_model=shapes.GpuAnswer,
    openapi_extra=body_of("FenceRequest", required=False),
)
async def fence(request: Request, gpu: str) -> Response:
    """Give this GPU (index, uuid, or NODE:INDEX of an executor's node) to no further job."""
    asked = requests.read(requests.FenceRequest, await optional_object(request))
    yard, admin = asking.yard(request), asking.admin(request)
    return Json(asdict(await run_in_threadpool(yard.fence, gpu, asked.reason, admin)))


@router.post("/gpus/{gpu}/unfence", operation_id="unfence_gpu", response_model=shapes.GpuAnswer)
def unfence(request: Request, gpu: str) -> Response:
    return Json(asdict(asking.yard(request).unfence(gpu, asking.admin(request))))
