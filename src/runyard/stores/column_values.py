"""Values that several tables keep in the same columns: reasons, and what is asked for."""

from __future__ import annotations

from typing import Any

from runyard.domain.reasons import Reason
from runyard.domain.resources import Request


def reason_from(code: str | None, params: dict[str, Any] | None) -> Reason | None:
    return None if code is None else Reason(code, params or {})


def request_columns(request: Request) -> dict[str, Any]:
    return {
        "cpu_milli": request.cpu_milli,
        "memory_mb": request.memory_mb,
        "gpu_milli": request.gpu_milli,
        "gpu_type": request.gpu_type,
        "port_count": request.port_count,
    }


def request_from(row: Any) -> Request:
    return Request(row.cpu_milli, row.memory_mb, row.gpu_milli, row.gpu_type, row.port_count)
