"""Evidence of a trouble, saved with the attempt before anything is done: stacks of every process,
what is on its GPUs, and what NCCL recorded."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runyard.domain.job import Attempt
from runyard.engine import server_log
from runyard.engine.parts import Parts
from runyard.supervisor.stack_dump import Dump

FOLDER = "evidence"
MOST_SETS = 5  # of one attempt: a stall may come and go
TIME_S = 30.0  # that all dumps of one attempt may take
MOST_TRACE_BYTES = 64 << 20
MOST_TRACES = 64
EXCERPT = 3000
MOST_EXCERPTS = 8
_NCCL_TRACE = "nccl_trace_rank_"


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    name: str  # relative to the attempt's evidence
    size: int
    at: float


class EvidenceTaker:
    """Takes it in threads of its own: a process in trouble may not answer soon."""

    def __init__(self, parts: Parts, taken: Callable[[], None]) -> None:
        self._parts = parts
        self._taken = taken
        self._pool = ThreadPoolExecutor(2, "evidence")

    def take(self, attempt: Attempt, why: str) -> Future[Mapping[str, Any]]:
        """What an alert should say about it; never an exception."""
        waiting = self._pool.submit(self._take, attempt, why)
        waiting.add_done_callback(lambda _done: self._taken())
        return waiting

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _take(self, attempt: Attempt, why: str) -> Mapping[str, Any]:
        log = server_log.of(attempt.attempt_id.rpartition(".")[0], attempt.attempt_id)
        try:
            return self._save(attempt, why)
        except Exception as error:  # a full disk, a folder that is gone: the alert must come
            log.opt(exception=error).error("no evidence could be saved")
            return {"evidence_error": str(error)}

    def _save(self, attempt: Attempt, why: str) -> Mapping[str, Any]:
        run_dir = folder_of(self._parts, attempt.attempt_id).parent
        above = run_dir / FOLDER
        if above.is_dir() and len(os.listdir(above)) >= MOST_SETS:
            return {"evidence": None}
        folder = above / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{why}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        executor = self._parts.executors[attempt.executor]
        dumps = executor.stacks(attempt.attempt_id, TIME_S)
        for dump in dumps:
            (folder / _file_name(dump)).write_text(dump.text, encoding="utf-8")
        (folder / "gpus.json").write_text(json.dumps(self._gpus(attempt), indent=1))
        traces = _copy_traces(run_dir, folder)
        words = "evidence saved: stacks of {} processes, {} NCCL traces, in {}"
        log = server_log.of(attempt.attempt_id.rpartition(".")[0], attempt.attempt_id)
        log.info(words, len(dumps), traces, folder.name)
        return {
            "evidence": folder.name,
            "files": sorted(os.listdir(folder)),
            "processes": [
                {"pid": dump.pid, "rank": dump.rank, "name": dump.name, "by": dump.by}
                for dump in dumps
            ],
            "stacks": _excerpt(dumps),
            "stacks_unread": _unread(dumps),
        }

    def _gpus(self, attempt: Attempt) -> list[dict[str, Any]]:
        latest = self._parts.board.latest(attempt.job_id)
        shown = {name: one.value for name, one in latest.items() if name.startswith("gpu.")}
        found: list[dict[str, Any]] = []
        for grant in () if attempt.slices else attempt.gpus:
            processes = self._parts.machine.processes(grant.uuid)
            found.append(
                {
                    "index": grant.index,
                    "uuid": grant.uuid,
                    "used_mb": self._parts.machine.used_mb(grant.uuid),
                    "processes": [asdict(process) for process in processes],
                }
            )
        return [*found, {"measured": shown}] if shown else found


# what was saved


def folder_of(parts: Parts, attempt_id: str) -> Path:
    return parts.settings.data_dir / "attempts" / attempt_id / FOLDER


def listed(folder: Path) -> list[EvidenceFile]:
    """Plain files only: the job can write here too, and a link could lead anywhere."""
    found = []
    for group in _entries(folder, stat.S_ISDIR):
        for file in _entries(folder / group.name, stat.S_ISREG):
            found.append(EvidenceFile(f"{group.name}/{file.name}", file.size, file.at))
    return sorted(found, key=lambda one: one.name)


def by_attempt(parts: Parts, attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """The names of what was saved with each attempt, where something was."""
    saved = [(one.number, listed(folder_of(parts, one.attempt_id))) for one in attempts]
    return [
        {"attempt": number, "files": [file.name for file in files]}
        for number, files in saved
        if files
    ]


def opened(folder: Path, name: str) -> int | None:
    """A file descriptor of one of those; None when it is not listed."""
    if name not in {one.name for one in listed(folder)}:
        return None
    group, _, file = name.partition("/")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        inside = os.open(folder / group, flags | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        return os.open(file, flags, dir_fd=inside)
    except OSError:
        return None
    finally:
        os.close(inside)


def _entries(folder: Path, kind: Callable[[int], bool]) -> list[EvidenceFile]:
    found = []
    with contextlib.suppress(OSError):
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return []
        for entry in os.scandir(folder):
            seen = entry.stat(follow_symlinks=False)
            if kind(seen.st_mode):
                found.append(EvidenceFile(entry.name, seen.st_size, seen.st_mtime))
    return found


# taking it


def _copy_traces(run_dir: Path, folder: Path) -> int:
    copied = 0
    for path in sorted(run_dir.glob(f"{_NCCL_TRACE}*"))[:MOST_TRACES]:
        seen = path.lstat()
        if stat.S_ISREG(seen.st_mode) and seen.st_size <= MOST_TRACE_BYTES:
            shutil.copyfile(path, folder / path.name, follow_symlinks=False)
            copied += 1
    return copied


def _file_name(dump: Dump) -> str:
    """Pids of different nodes may be the same."""
    where = "" if dump.slice_index is None else f"slice-{dump.slice_index}-"
    rank = where if dump.rank is None else f"rank-{dump.rank}-"
    return f"{rank}pid-{dump.pid}.txt"


def _unread(dumps: Sequence[Dump]) -> bool:
    """Whether there is a Python among them, and none told where it is: py-spy would."""
    programs = [dump.text.partition("\n")[0] for dump in dumps]
    return any("python" in one for one in programs) and all(dump.by == "proc" for dump in dumps)


def _excerpt(dumps: list[Dump]) -> str:
    """Of the first process that told most, or of every rank a part: what the alert itself
    shows."""
    ranks = {dump.rank: dump for dump in reversed(dumps) if dump.by != "proc"}
    ranks.pop(None, None)
    if len(ranks) > 1:
        shown = sorted(ranks.items(), key=lambda item: item[0] or 0)[:MOST_EXCERPTS]
        share = EXCERPT // len(shown)
        return "\n".join(f"rank {rank}\n{dump.text[:share]}" for rank, dump in shown)
    told = next((dump for dump in dumps if dump.by != "proc"), dumps[0] if dumps else None)
    return "" if told is None else told.text[:EXCERPT]
