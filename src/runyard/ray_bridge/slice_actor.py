"""The actor that stands for one slice of an attempt on its node.

This module travels to the nodes by value: it uses the standard library, Ray and what travels with
it (see cluster.py), nothing else of ours.
Below it: the shim, which Ray may kill as its direct child, the keeper in a session of its own, the
supervisor, the ranks. While the actor lives it holds the lifeline of the keeper.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import zipfile
from typing import Any

from runyard.ray_bridge.node_process import age_s, keep_lean
from runyard.ray_bridge.slice_changes import LOOK_S, Changes
from runyard.ray_bridge.slice_files import SliceFiles
from runyard.ray_bridge.slice_gpus import SliceGpus
from runyard.ray_bridge.slice_use import slice_usage
from runyard.supervisor.port_binding import taken

STALE_S = 7 * 24 * 3600.0  # folders of slices nobody came back for
USAGE_EVERY_S = 4.0
_RECOVER_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_SETTLE_S = 60.0
_STACKS_MARGIN_S = 5.0
_SWEEP_S = 12.0
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR")


class SliceActor:
    """Knows nothing of its slice until `introduce`: for arguments of its making Ray would import
    large packages first."""

    def __init__(self) -> None:
        keep_lean()
        self._attempt_id = self._owner = self._root = self._slice = self._folder = ""
        self._index = 0
        self._files = SliceFiles("")
        self._gpus = SliceGpus("")
        self._changes: Changes | None = None
        self._lock = threading.Lock()
        self._waiting: subprocess.Popen[bytes] | None = None  # a shim that has no order yet
        self._shim: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()  # nothing of it lives, and its exit record is written
        self._news: list[dict[str, Any]] = []
        self._socket: socket.socket | None = None
        self._started: dict[str, Any] = {}
        self._usage_due = 0.0
        self._whole: dict[str, Any] = {}

    # called by the bridge

    def introduce(
        self, attempt_id: str, index: int, owner: str, root: str, code: str = ""
    ) -> dict[str, Any]:
        """Before everything else. `root` is the folder of Runyard on the node, "" for the usual
        one; `code` names the archive of the slice's program, which may be there from another."""
        self._attempt_id = attempt_id
        self._index = index
        self._owner = owner
        self._root = root or f"/tmp/runyard-ray-{os.getuid()}"
        self._slice = f"{self._root}/{owner}/{attempt_id}.n{index}"
        self._folder = f"{self._slice}/attempts/{attempt_id}"
        self._files = SliceFiles(self._folder)
        self._gpus = SliceGpus(f"{self._slice}/gpus.json")
        if code and os.path.isdir(self._place_of(code)):
            with contextlib.suppress(OSError):  # the start will say what is wrong
                self._prepare_folders()
                self._waiting = self._spawn_shim(self._program(code))
        told = self.hello()
        if told["reads_gpus"]:
            self._gpus.look_before()
        return told

    def hello(self) -> dict[str, Any]:
        import ray

        context = ray.get_runtime_context()
        accelerators = context.get_accelerator_ids()
        return {
            "owner": self._owner,
            "attempt_id": self._attempt_id,
            "index": self._index,
            "pid": os.getpid(),
            "node_id": context.get_node_id(),
            "address": ray.util.get_node_ip_address(),
            "hostname": socket.gethostname(),
            "boot_id": _text("/proc/sys/kernel/random/boot_id"),
            "pidns": os.stat("/proc/self/ns/pid").st_ino,
            "gpu_ids": list(accelerators.get("GPU", ())),
            "reads_gpus": bool(accelerators.get("GPU")) and self._gpus.can_tell,
            "folder": self._folder,
            "python": sys.version.split()[0],
            "age_s": age_s(),
            "has_code": self._waiting is not None,
            "started": bool(self._started),
            "over": self._over.is_set(),
        }

    def taken_ports(self, ports: list[int]) -> list[int]:
        """Those of them that a rank could not listen at here, at whatever address."""
        return taken(ports)

    def start(self, code: str, archive: bytes | None, order: dict[str, Any]) -> dict[str, Any]:
        """Unpack the supervisor and start the slice; the same again changes nothing. Whoever said
        `has_code` needs no archive."""
        with self._lock:
            if self._started:
                return self._started
            self._prepare_folders()
            program = self._unpack(code, archive)
            self._listen()
            self._whole = order["whole"]
            self._usage_due = time.monotonic() + USAGE_EVERY_S / 4  # not while it starts
            spec = _moved(order["spec"], order["run_dir"], self._folder)
            line = json.dumps({"attempt_id": self._attempt_id, "spec": spec}).encode() + b"\n"
            if self._waiting is None or self._waiting.poll() is not None:
                self._waiting = self._spawn_shim(program)
            self._shim = self._waiting
            assert self._shim.stdin is not None
            self._shim.stdin.write(line)
            self._shim.stdin.flush()
            visible = str(spec["env"].get("CUDA_VISIBLE_DEVICES", ""))
            self._gpus.started(visible, shared=0 < float(self._whole["gpus_each"]) < 1)
            self._started = {"shim": self._shim.pid, "program": program}
            threading.Thread(target=self._await_shim, args=(program,), daemon=True).start()
            return self._started

    def whole(self) -> dict[str, Any]:
        """What the whole attempt is, for a server that takes it over; empty before its start."""
        return self._whole

    def recover(self, code: str, archive: bytes) -> bool:
        """In place of an actor that died: see that what is left of the slice ends, and tell of it
        meanwhile. False where there is nothing of it here."""
        if not os.path.exists(f"{self._folder}/journal"):
            return False
        program = self._unpack(code, archive)
        self._listen()
        threading.Thread(target=self._end_what_is_left, args=(program,), daemon=True).start()
        return True

    def stop(self, request: dict[str, Any]) -> bool:
        """Ask for the end of the slice; False where it has ended or never began."""
        with self._lock:
            shim = self._shim
            if shim is None or self._over.is_set():
                return False
            assert shim.stdin is not None
            try:
                shim.stdin.write(json.dumps(request).encode() + b"\n")
                shim.stdin.flush()
            except OSError:
                return False
            self._gpus.note()
            return True

    def gpus_given_back(self, seconds: float) -> dict[str, Any]:
        """Once it is over: see SliceGpus."""
        return self._gpus.given_back(seconds)

    def read(self, offsets: dict[str, int], wait_s: float, blocks: int = 0) -> Any:
        """What was written behind these offsets, and news; waits for some if there is none. Only
        an answer that says `over` and has no piece left is the last. One that says `behind` could
        have been followed by `blocks` of the file it names, as returns of their own."""
        deadline = time.monotonic() + wait_s
        while True:
            over = self._over.is_set()  # before the look: what is written until then is seen
            pieces = self._files.pieces(offsets)
            self._hear_news()
            news, self._news = self._news, []
            if pieces or news or over or time.monotonic() >= deadline:
                break
            self._await_change(deadline - time.monotonic())
        if self._changes is not None:
            self._changes.looked()
        behind = self._files.longest(offsets, pieces)
        start, more = 0, [b""] * blocks
        if behind and blocks:
            start, more = self._files.blocks(behind, offsets, pieces, blocks)
        answer = {
            "pieces": pieces,
            "behind": behind,
            "start": start,
            "news": news,
            "over": over,
            "usage": self._usage_now_and_then(),
        }
        return (answer, *more) if blocks else answer

    def stacks(self, code: str, archive: bytes, seconds: float) -> list[dict[str, Any]]:
        """Where each process of the slice is now; looked at by the supervisor's own means."""
        program = self._unpack(code, archive)
        arguments = [program, self._slice, "--stacks", self._attempt_id, str(seconds)]
        found: list[dict[str, Any]] = self._ask(arguments, seconds + _STACKS_MARGIN_S)
        return [{**one, "slice_index": self._index} for one in found]

    def sweep(self, code: str, archive: bytes, request: dict[str, Any]) -> dict[str, Any]:
        """Kill what lives of the slice, whose end was asked for: how many were killed, and those
        that live on."""
        if not os.path.exists(f"{self._folder}/journal"):
            return {"killed": 0, "living": []}
        program = self._unpack(code, archive)
        arguments = [program, self._slice, "--sweep", self._attempt_id]
        found: dict[str, Any] = self._ask(arguments, _SWEEP_S, request)
        return found

    def clear(self) -> bool:
        """Everything of it was read: remove its folder."""
        shutil.rmtree(self._slice, ignore_errors=True)
        return not os.path.exists(self._slice)

    # inside

    def _prepare_folders(self) -> None:
        os.makedirs(self._root, 0o700, exist_ok=True)
        status = os.lstat(self._root)
        if status.st_uid != os.getuid() or status.st_mode & 0o077:
            raise PermissionError(f"{self._root} must belong to this user alone (mode 0700)")
        self._forget_stale(os.path.dirname(self._slice))
        os.makedirs(self._folder, 0o700, exist_ok=True)

    def _forget_stale(self, above: str) -> None:
        with contextlib.suppress(OSError):
            for entry in os.scandir(above):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > STALE_S:
                    shutil.rmtree(entry.path, ignore_errors=True)

    def _unpack(self, code: str, archive: bytes | None) -> str:
        """The path of the slice's program; many actors may do this at the same time."""
        place = self._place_of(code)
        if not os.path.isdir(place):
            assert archive is not None
            draft = f"{place}.{os.getpid()}.{self._attempt_id}.{self._index}.tmp"
            os.makedirs(draft, 0o700, exist_ok=True)
            with zipfile.ZipFile(io.BytesIO(archive)) as packed:
                packed.extractall(draft)
            try:
                os.rename(draft, place)
            except OSError:
                shutil.rmtree(draft, ignore_errors=True)  # another one was quicker
        return self._program(code)

    def _place_of(self, code: str) -> str:
        return f"{self._root}/code/{code}"

    def _program(self, code: str) -> str:
        return f"{self._place_of(code)}/runyard/supervisor/slice_main.py"

    def _spawn_shim(self, program: str) -> subprocess.Popen[bytes]:
        return self._spawn([program, self._slice], subprocess.PIPE)

    def _spawn(
        self, arguments: list[str], stdin: int, stdout: int | None = None
    ) -> subprocess.Popen[bytes]:
        with open(f"{self._slice}/keeper.out", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", *arguments],
                stdin=stdin,
                stdout=log if stdout is None else stdout,
                stderr=log,
                env={k: v for k, v in os.environ.items() if k in _KEPT_ENVIRONMENT},
                cwd="/",
            )

    def _ask(self, arguments: list[str], seconds: float, given: Any = None) -> Any:
        """What the slice's program says; `given` is what it reads."""
        helper = self._spawn(arguments, subprocess.PIPE, subprocess.PIPE)
        try:
            told, _ = helper.communicate(json.dumps(given).encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            helper.kill()
            helper.communicate()
            raise
        return json.loads(told)

    def _listen(self) -> None:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        folder = os.open(self._slice, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with contextlib.suppress(FileNotFoundError):  # that of an actor that died
                os.unlink("news.sock", dir_fd=folder)
            listening.bind(f"/proc/self/fd/{folder}/news.sock")
        finally:
            os.close(folder)
        self._socket = listening
        self._changes = Changes(self._folder, "journal")

    def _await_shim(self, program: str) -> None:
        assert self._shim is not None
        self._shim.wait()
        # The keeper ends last of all, and after its exit record. If it was killed, or the shim
        # was, what it left is ended here and the record written.
        self._end_what_is_left(program)

    def _end_what_is_left(self, program: str) -> None:
        pause = _RECOVER_PAUSE_S
        while not self._has_exit_record() and not self._settle(program):
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        self._over.set()
        assert self._changes is not None
        self._changes.wake()

    def _has_exit_record(self) -> bool:
        with contextlib.suppress(OSError), open(f"{self._folder}/journal", "rb") as file:
            return b'"kind":"exit"' in file.read().splitlines()[-1]
        return False

    def _settle(self, program: str) -> bool:
        helper = self._spawn(
            [program, self._slice, "--settle", self._attempt_id], subprocess.DEVNULL
        )
        try:
            return helper.wait(_SETTLE_S) == 0
        except subprocess.TimeoutExpired:
            helper.kill()
            helper.wait()
            return False

    def _hear_news(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError, ValueError):
                while True:
                    self._news.append(json.loads(self._socket.recv(1 << 18)))

    def _await_change(self, seconds: float) -> None:
        if self._changes is None or self._socket is None:
            time.sleep(min(seconds, LOOK_S))  # it was not started yet
        else:
            self._changes.wait(seconds, self._socket.fileno())

    def _usage_now_and_then(self) -> dict[str, Any] | None:
        if time.monotonic() < self._usage_due:
            return None
        self._usage_due = time.monotonic() + USAGE_EVERY_S
        self._gpus.note_now_and_then()
        return self._usage()

    def _usage(self) -> dict[str, Any] | None:
        """What the processes below the shim use now."""
        if self._shim is None or self._over.is_set():
            return None
        return slice_usage(self._shim.pid)


def _moved(value: Any, run_dir: str, folder: str) -> Any:
    """Everything that names the run dir as the server has it names the one of this node."""
    if isinstance(value, str):
        return folder + value[len(run_dir) :] if _inside(value, run_dir) else value
    if isinstance(value, list):
        return [_moved(one, run_dir, folder) for one in value]
    if isinstance(value, dict):
        return {name: _moved(one, run_dir, folder) for name, one in value.items()}
    return value


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def _text(path: str) -> str:
    with open(path) as file:
        return file.read().strip()
