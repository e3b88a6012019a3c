"""The types of a job's fields, as pydantic and the OpenAPI page see them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema

from runyard.domain import resources
from runyard.wire import job_fields


def _typed(function: Any, schema: dict[str, Any]) -> Any:
    return (PlainValidator(function), WithJsonSchema(schema))


_TEXT = {"type": "string"}
_TEXT_MAP = {"type": "object", "additionalProperties": {"type": "string"}}
_OBJECT = {"type": "object"}
_ID = {"anyOf": [{"type": "string"}, {"type": "integer"}]}

Name = Annotated[
    str, *_typed(job_fields.name, {"type": "string", "maxLength": job_fields.MAX_NAME})
]
Description = Annotated[str, *_typed(job_fields.description, _TEXT)]
Command = Annotated[
    str | tuple[str, ...],
    *_typed(
        job_fields.command, {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}
    ),
]
EnvVars = Annotated[dict[str, str], *_typed(job_fields.env_vars, _TEXT_MAP)]
BaseEnv = Annotated[dict[str, str], *_typed(job_fields.base_env, _TEXT_MAP)]
Params = Annotated[dict[str, Any], *_typed(job_fields.params, _OBJECT)]
Labels = Annotated[dict[str, str], *_typed(job_fields.labels, _TEXT_MAP)]
Ports = Annotated[
    int | tuple[str, ...],
    *_typed(job_fields.ports, {"anyOf": [{"type": "integer"}, {"type": "array", "items": _TEXT}]}),
]
DependsOn = Annotated[
    tuple[tuple[str, Literal["success", "end"]], ...],
    *_typed(
        job_fields.depends_on,
        {
            "type": "array",
            "items": {
                "anyOf": [
                    *_ID["anyOf"],
                    {
                        "type": "object",
                        "properties": {"job": _ID, "on": {"enum": ["success", "end"]}},
                        "required": ["job"],
                    },
                ]
            },
        },
    ),
]
AbsolutePath = Annotated[str, *_typed(job_fields.absolute_path, _TEXT)]
Path = Annotated[str, *_typed(job_fields.path, _TEXT)]
ShortText = Annotated[
    str, *_typed(job_fields.name, {"type": "string", "maxLength": job_fields.MAX_NAME})
]
Prefetch = Annotated[list[str], *_typed(job_fields.prefetch, {"type": "array", "items": _TEXT})]

ServiceName = Annotated[str, *_typed(job_fields.service_name, _TEXT)]
ServiceUrl = Annotated[str, *_typed(job_fields.service_url, _TEXT)]
Health = Annotated[str, *_typed(job_fields.health, _TEXT)]

Lowered = BeforeValidator(job_fields.lowered)
NotBool = BeforeValidator(job_fields.not_bool)
Seconds = Annotated[float, NotBool, Field(gt=0, le=10**9, allow_inf_nan=False)]
CpuCores = Annotated[
    float, NotBool, Field(ge=0, le=resources.MAX_CPU_MILLI // 1000, allow_inf_nan=False)
]
MemoryGb = Annotated[
    float, NotBool, Field(ge=0, le=resources.MAX_MEMORY_MB // 1024, allow_inf_nan=False)
]
GpuCount = Annotated[
    float,
    NotBool,
    Field(ge=0, le=resources.MAX_GPU_MILLI // 1000, allow_inf_nan=False),
    AfterValidator(job_fields.gpu_count),
]
Delay = Annotated[float, NotBool, Field(ge=0, le=10**7, allow_inf_nan=False)]
Grace = Annotated[float, NotBool, Field(ge=0, le=86400, allow_inf_nan=False)]
PortNumber = Annotated[int, NotBool, Field(ge=1, le=65535)]
DatasetId = Annotated[int, NotBool, Field(ge=0, le=2**53)]
