"""Every known text of a failure."""

from __future__ import annotations

from runyard.domain.failures.signature import Signature
from runyard.domain.failures.signatures import (
    communication,
    cuda,
    disk,
    divergence,
    gpu_memory,
    host_memory,
    models,
    processes,
    program,
    translated,
)

SIGNATURES: tuple[Signature, ...] = (
    *gpu_memory.SIGNATURES,
    *host_memory.SIGNATURES,
    *cuda.SIGNATURES,
    *communication.SIGNATURES,
    *divergence.SIGNATURES,
    *disk.SIGNATURES,
    *models.SIGNATURES,
    *program.SIGNATURES,
    *processes.SIGNATURES,
    *translated.SIGNATURES,
)
