"""A cluster that lives in a folder: nodes are rows of a file, slices are real processes.

Several servers reach it at once, and it outlives them all, as a cluster on other machines does.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from runyard.executors.base import (
    End,
    ExecutorNode,
    Launch,
    News,
    NewsKind,
    NodeGpu,
    Sight,
    Sighting,
    Stop,
    Swept,
    Usage,
)

_RUNNER = Path(__file__).with_name("file_cluster_runner.py")
_LOOK_S = 0.05


def make(folder: Path, names: Sequence[str], gpus: int = 2) -> Path:
    """A folder with nodes that are alive."""
    (folder / "attempts").mkdir(parents=True)
    nodes = [{"name": name, "gpus": gpus, "alive": True} for name in names]
    (folder / "nodes.json").write_text(json.dumps(nodes))
    return folder


class FileCluster:
    name = "ray"

    def __init__(self, folder: Path, data_dir: Path) -> None:
        self._folder = folder
        self._data_dir = data_dir  # of the server: what it reads is copied to there
        self._hear: Callable[[News], None] | None = None
        self._told: dict[str, Sight] = {}
        self._runners: list[subprocess.Popen[bytes]] = []
        self._closing = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    # life

    def open(self, hear: Callable[[News], None]) -> None:
        self._hear = hear
        self._watch.start()

    def close(self, *, keep: bool) -> None:  # noqa: ARG002
        self._closing.set()
        self._watch.join(5)

    def available(self) -> tuple[bool, str]:
        return True, ""

    def nodes(self) -> Sequence[ExecutorNode]:
        rows = json.loads((self._folder / "nodes.json").read_text())
        return [
            ExecutorNode(
                name=row["name"],
                address="127.0.0.1",
                cpu_cores=8,
                memory_mb=16 * 1024,
                gpus=tuple(
                    NodeGpu(n, f"{row['name']}-gpu-{n}", "NVIDIA H100", 81_920)
                    for n in range(row["gpus"])
                ),
                alive=row["alive"],
                cluster=str(self._folder),
            )
            for row in rows
        ]

    # attempts

    def start(self, launch: Launch) -> None:
        folder = self._folder / "attempts" / launch.attempt_id
        if not self._decide(launch.attempt_id, "started"):
            return
        folder.mkdir()
        spec = {"env": dict(launch.env), "cwd": launch.cwd, "slices": []}
        for part in launch.slices:
            ranks = [asdict(rank) for rank in part.ranks] or [{"rank": 0, "env": {}}]
            spec["slices"].append({**asdict(part), "ranks": ranks})
        for made in (*launch.make_dirs, launch.cwd, folder / "tmp"):
            os.makedirs(made, exist_ok=True)
        # The run dir is a folder of the cluster, not of the server.
        text = json.dumps(spec).replace(launch.env["RUNYARD_RUN_DIR"], str(folder))
        _write(folder / "spec.json", json.loads(text))
        for part in launch.slices:
            argv = [sys.executable, str(_RUNNER), str(folder), str(part.index)]
            self._runners.append(subprocess.Popen(argv, start_new_session=True, cwd="/"))

    def refuse(self, attempt_id: str) -> bool:
        return self._decide(attempt_id, "refused") or self._fate(attempt_id) == "refused"

    def stop(self, attempt_id: str, stop: Stop) -> None:
        folder = self._folder / "attempts" / attempt_id
        if folder.is_dir():
            _write(folder / "stop.json", asdict(stop))

    def inspect(self, attempt_ids: Sequence[str]) -> dict[str, Sighting]:
        return {one: self._sight(one) for one in attempt_ids}

    def sweep(self, attempt_ids: Sequence[str]) -> dict[str, Swept]:
        return dict.fromkeys(attempt_ids, Swept())

    def sweep_traceless(self, attempts: Mapping[str, tuple[int, float]]) -> dict[str, Swept]:
        return dict.fromkeys(attempts, Swept())

    def usage(self, attempt_ids: Sequence[str]) -> dict[str, Usage]:  # noqa: ARG002
        return {}

    def log_path(self, attempt_id: str, service: str = "", rank: int = 0) -> str:  # noqa: ARG002
        name = f"rank-{rank}.log" if rank else "out.log"
        return str(self._folder / "attempts" / attempt_id / name)

    def services(self, attempt_id: str) -> list[dict[str, Any]]:  # noqa: ARG002
        return []

    def ranks(self, attempt_id: str) -> list[dict[str, Any]]:  # noqa: ARG002
        return []

    def stacks(self, attempt_id: str, seconds: float) -> list[Any]:  # noqa: ARG002
        return []

    def remove(self, attempt_id: str) -> None:
        pass

    def touched_at(self, attempt_id: str) -> float:  # noqa: ARG002
        return time.time()

    def known(self) -> list[str]:
        return []

    # inside

    def _decide(self, attempt_id: str, fate: str) -> bool:
        """Whether it is started or refused is decided once, for all servers."""
        path = self._folder / "attempts" / f"{attempt_id}.fate"
        draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
        draft.write_text(fate)
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        return True

    def _fate(self, attempt_id: str) -> str:
        try:
            return (self._folder / "attempts" / f"{attempt_id}.fate").read_text()
        except FileNotFoundError:
            return ""

    def _sight(self, attempt_id: str) -> Sighting:
        folder = self._folder / "attempts" / attempt_id
        spec = _read(folder / "spec.json")
        if spec is None:
            absent = self._fate(attempt_id) != "started"
            return Sighting(Sight.ABSENT if absent else Sight.STARTING)
        parts = range(len(spec["slices"]))
        begun = [_read(folder / f"begun-{part}.json") for part in parts]
        if None in begun:
            return Sighting(Sight.STARTING)
        started = max(one["at"] for one in begun if one)
        stop = _read(folder / "stop.json")
        ends = [end for part in parts if (end := _read(folder / f"end-{part}.json"))]
        if len(ends) < len(parts):
            sight = Sight.STOPPING if stop else Sight.RUNNING
            return Sighting(sight, started, stop_seq=stop["seq"] if stop else 0)
        return Sighting(Sight.ENDED, started, _end(ends, started, stop))

    def _look(self) -> None:
        """What happened to attempts, whoever started them."""
        while not self._closing.wait(_LOOK_S):
            self._runners = [runner for runner in self._runners if runner.poll() is None]
            for path in (self._folder / "attempts").glob("*.fate"):
                self._copy(path.stem)
                seen = self._sight(path.stem)
                before = self._told.get(path.stem)
                if seen.sight is before or before is Sight.ENDED or self._hear is None:
                    continue
                self._told[path.stem] = seen.sight
                if seen.sight is Sight.RUNNING and seen.started_at is not None:
                    self._hear(News(path.stem, NewsKind.STARTED, seen.started_at))
                elif seen.end is not None:
                    self._hear(News(path.stem, NewsKind.ENDED, seen.end.ended_at, seen.end))

    def _copy(self, attempt_id: str) -> None:
        """What its ranks reported, from where the last copy ended."""
        source = self._folder / "attempts" / attempt_id / "metrics.jsonl"
        target = self._data_dir / "attempts" / attempt_id / "metrics.jsonl"
        if not source.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(source, "rb") as read, open(target, "ab") as written:
            read.seek(written.tell())
            written.write(read.read())


def stop_all(folder: Path) -> None:
    """Without grace, whoever started them."""
    for spec in (folder / "attempts").glob("*/spec.json"):
        _write(spec.with_name("stop.json"), {"seq": 99, "grace_s": 0})


def _end(ends: list[dict[str, Any]], started: float, stop: dict[str, Any] | None) -> End:
    failed = sorted((one for one in ends if one["code"] != 0), key=lambda one: one["at"])
    chosen = failed[0] if failed else ends[0]
    cause = "cancelled" if stop else "exited"
    receipt = {"proof": "echild", "stop": stop}
    at = max(one["at"] for one in ends)
    code, number = chosen["code"], chosen["signal"]
    return End(code, number, cause, "supervisor", at, started, receipt=receipt)


def _read(path: Path) -> Any:
    with contextlib.suppress(FileNotFoundError):
        return json.loads(path.read_text())
    return None


def _write(path: Path, value: Any) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(value))
    draft.replace(path)
