"""What a training tells: how far it is, its metrics, and where it saved itself."""

from __future__ import annotations

import os
import time

from runyard.report import lines, metrics_file, stack_offer

# Of a distributed attempt: lines with the token of an earlier one are refused.
TOKEN_VARIABLE = "RUNYARD_ATTEMPT_TOKEN"
_LONGEST_PHASE = 20
BATCH_SCALE = "batch_scale"  # the kind of the line that tells that the program asks for it

_marked: set[tuple[int, str]] = set()


def report(
    step: object = None,
    total: object = None,
    *,
    epoch: object = None,
    phase: object = None,
    **metrics: object,
) -> None:
    """Tell the step, the `total` number of steps, the epoch (and `total_epochs`), and any metrics.

    Values are numbers, or numpy or torch scalars. Outside a job this does nothing. `phase` is what
    is done now until the next step: loading, training, evaluating, saving or finishing.
    """
    told: dict[str, object] = {"step": step, "total": total, "epoch": epoch, **metrics}
    if isinstance(phase, str):
        _tell({"phase": phase[:_LONGEST_PHASE]}, told)
    else:
        _tell({}, told if phase is None else {**told, "phase": phase})


def checkpoint(path: str | os.PathLike[str], step: object = None, **metrics: object) -> None:
    """Tell of a checkpoint, file or directory, that is now complete at `path`."""
    try:
        where = os.path.abspath(os.fsdecode(path))
    except Exception:  # not a path at all, or no working directory any more
        metrics_file.count_dropped()
        return
    if len(where) > lines.LONGEST_PATH:
        metrics_file.count_dropped()
        return
    _tell({"kind": "checkpoint", "path": where}, {"step": step, **metrics})


def mark(kind: str) -> None:
    """Tell once per process that something was asked for."""
    mine = os.getpid(), kind
    if mine not in _marked:
        _marked.add(mine)
        _tell({"kind": kind}, {})


def _tell(more: dict[str, object], metrics: dict[str, object]) -> None:
    if metrics_file.path() is None:
        return
    stack_offer.make()
    try:
        line = lines.encode({**_head(), **more}, metrics)
    except Exception:  # a value whose own methods fail must not end the training
        line = None
    if line is None:
        metrics_file.count_dropped()
    else:
        metrics_file.append(line, important="kind" in more)


def _head() -> dict[str, object]:
    head: dict[str, object] = {
        "v": lines.VERSION,
        "t": round(time.time(), 6),
        "m": round(time.monotonic(), 6),
        "pid": os.getpid(),
        "rank": metrics_file.rank(),
    }
    token = os.environ.get(TOKEN_VARIABLE)
    if token:
        head["token"] = token
    return head
