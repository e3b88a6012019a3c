"""A receipt as a person reads it."""

from __future__ import annotations

from typing import Any

from runyard.cli import formatting, tables, wording


def print_receipt(job_id: str, receipt: dict[str, Any]) -> None:
    signals = [
        f"{formatting.signal_name(item.get('signal'))} {formatting.clock(item.get('at'))}"
        f" {formatting.clean(str(item.get('target') or ''))}".rstrip()
        for item in receipt.get("signals") or ()
    ]
    gpus = [_gpu(gpu) for gpu in receipt.get("gpus") or ()]
    stuck = [formatting.clean(wording.process(item)) for item in receipt.get("stuck") or ()]
    attempt = str(receipt.get("attempt_id") or job_id)
    print(tables.bold(formatting.clean(attempt)))
    tables.print_card(
        [
            ("requested by", str(receipt.get("requested_by") or "")),
            ("requested", formatting.clock(receipt.get("requested_at"))),
            ("stage", str(receipt.get("stage") or "")),
            ("signals", "\n".join(signals)),
            ("processes ended", _text(receipt.get("processes_ended"))),
            ("proof", _text(receipt.get("proof"))),
            ("slow to die", "\n".join(stuck)),
            ("GPU memory", "\n".join(gpus)),
            ("services", "\n".join(map(_service, receipt.get("services") or ()))),
            ("ports given back", ", ".join(map(str, receipt.get("ports") or ()))),
            ("shared memory", _bytes(receipt.get("shm_bytes"))),
            ("temp removed", _yes_or_no(receipt.get("temp_removed"))),
            (
                "took",
                _seconds(float(receipt["seconds"])) if receipt.get("seconds") else "",
            ),
            ("ended", formatting.clock(receipt.get("ended_at"))),
        ]
    )


def summary(job_id: str, answer: dict[str, Any]) -> str:
    """One line about how a cancel went, with the proof where there is one."""
    if answer.get("status") != "cancelled":
        told = wording.say("cancel_unproven", job=job_id)
        reason = wording.reason(answer.get("reason"))
        return f"{told} ({reason})" if reason else told
    receipt = answer.get("receipt") or {}
    count = receipt.get("processes_ended")
    if count is None:
        return wording.say("cancelled", job=job_id)
    if receipt.get("proof") == "never_started":
        return wording.say("cancelled_unstarted", job=job_id)
    if receipt.get("proof") == "between_attempts":
        return wording.say("cancelled_between_attempts", job=job_id)
    seconds = f"{receipt.get('seconds') or 0:.2f}"
    key = "cancelled_one" if count == 1 else "cancelled_proof"
    told = wording.say(key, job=job_id, processes=count, seconds=seconds)
    if receipt.get("proof"):
        told += wording.say("cancel_proof", proof=receipt["proof"])
    gpus = receipt.get("gpus") or ()
    back = [f"GPU {gpu.get('index')}" for gpu in gpus if _is_proven(gpu)]
    back += [wording.say("port", port=port) for port in receipt.get("ports") or ()]
    unproven = [f"GPU {gpu.get('index')}" for gpu in gpus if not _is_proven(gpu)]
    if back:
        told += wording.say("given_back", what=", ".join(back))
    if unproven:
        told += wording.say("memory_not_read", what=", ".join(unproven))
    return told


def _is_proven(gpu: dict[str, Any]) -> bool:
    """Whether anybody could read its memory after the end."""
    return gpu.get("memory_after_mb") is not None


def _gpu(gpu: dict[str, Any]) -> str:
    node = formatting.clean(str(gpu.get("node") or ""))
    name = f"GPU {gpu.get('index')}" + (f" ({node})" if node else "")
    if not _is_proven(gpu):
        return wording.say("gpu_not_read", name=name)
    before = gpu.get("memory_before_mb")
    return f"{name}: {'?' if before is None else before} -> {gpu.get('memory_after_mb')} MB"


def _service(service: dict[str, Any]) -> str:
    ended = (
        formatting.signal_name(service["signal"])
        if service.get("signal")
        else service.get("exit_code")
    )
    told = f"{service.get('name')} (pid {service.get('pid')}): {'?' if ended is None else ended}"
    restarts = service.get("restarts")
    return f"{told}, {wording.say('restarts', count=restarts)}" if restarts else told


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _yes_or_no(value: Any) -> str:
    return "" if value is None else "yes" if value else "no"


def _seconds(value: float) -> str:
    return f"{formatting.number(max(round(value, 3), 0.001))} s"


def _bytes(value: Any) -> str:
    return formatting.size(float(value)) if isinstance(value, (int, float)) else ""
