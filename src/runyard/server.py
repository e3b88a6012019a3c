"""The composition root: the only file that names concrete stores, executors and probes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import uvicorn
import uvloop

from runyard import settings as settings_module
from runyard.api.app import create_app
from runyard.data_dir import DataDir
from runyard.domain import errors
from runyard.engine import server_log
from runyard.engine.hub import Hub
from runyard.engine.node.machine import Machine
from runyard.engine.parts import Parts
from runyard.engine.tallies import Tallies
from runyard.engine.watch.board import Board
from runyard.engine.yard import Yard
from runyard.executors.base import Executor
from runyard.executors.docker import DockerExecutor
from runyard.executors.docker_plan import DockerOptions
from runyard.executors.local import LocalExecutor
from runyard.executors.ray import RayExecutor, RayOptions
from runyard.notify.apprise_services import AppriseSender
from runyard.notify.base import Sender
from runyard.notify.delivering import Deliverer
from runyard.notify.feishu import FeishuSender
from runyard.notify.webhook import WebhookSender
from runyard.probes.checkpoint_program import CheckpointProgram
from runyard.probes.gpu import NvmlProbe
from runyard.probes.gpu_locks import GpuLocks
from runyard.probes.kernel_log import KernelLog
from runyard.probes.machine import PsutilProbe
from runyard.probes.node_meter import PsutilMeter
from runyard.probes.tensorboard import TensorBoardFiles
from runyard.settings import Settings
from runyard.stores.base import Store
from runyard.stores.opening import open_store
from runyard.stores.timed import timed
from runyard.supervisor import engine_sockets, process_table

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_STREAM_GRACE_S = 1
_SOCKET_MESSAGE_BYTES = 64 * 1024  # of what clients of the live socket say
_PING_S = 15.0
_PONG_S = 20.0
_DATE_S = 1.0  # how exact the Date header of answers is


def serve(overrides: Mapping[str, object], started_by: Sequence[str] = ()) -> int:
    """Run a server in the foreground until it is told to stop; the exit code of the process.
    `started_by` is the command that starts it again, where this process is nothing else."""
    try:
        settings = settings_module.load(overrides)
        with DataDir.open(settings.data_dir) as folder:
            server_log.open_log(settings.data_dir / "logs", settings.log_level)
            listening = _listen(settings)
            given_port = settings.port
            settings = replace(settings, port=listening.getsockname()[1])
            with (
                open_yard(settings, _check_keys) as yard,
                folder.published(_client_url(settings)),
                asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
            ):
                if started_by:
                    # Where any port would have done, it comes back at the one that people know.
                    fixed = () if given_port else ("--port", str(settings.port))
                    yard.drills.comes_back_by = (*started_by, *fixed)
                return runner.run(_Serving(settings, yard, listening).run())
    except errors.RunyardError as error:
        return _refuse(error)
    except OSError as error:
        return _refuse(errors.StartRefused(f"The server cannot work: {error}."))


def _refuse(error: errors.RunyardError) -> int:
    print(f"runyard: {error.message} [{error.code}]", file=sys.stderr)
    return 1


@contextmanager
def open_yard(
    settings: Settings, check: Callable[[Settings, Yard], None] | None = None
) -> Iterator[Yard]:
    """A yard at work, without HTTP. `check` may refuse before anything is adopted or started.

    On leaving it is closed; what still runs then is kept, unless the caller ended it before.
    """
    opened = open_store(settings.store_url)
    try:
        yard = compose(settings, opened)
        if check:
            check(settings, yard)
        yard.open()
        deliverer = _deliverer(settings, opened)
        yard.outbox.wake = deliverer.wake
        deliverer.start()
        # What was made so far lives as long as the server: no need to look at it again.
        gc.collect()
        gc.freeze()
        try:
            yield yard
        finally:
            yard.close(keep=yard.runtime.live_count() > 0)
            deliverer.stop()
    finally:
        opened.close()
        server_log.close_log()


def compose(settings: Settings, store: Store, *, node_id: str | None = None) -> Yard:
    """A yard that is not opened yet. With a `node_id` of its own it may never be: it only looks,
    and nothing is written into the data directory."""
    settings = replace(settings, node_name=settings.node_name or socket.gethostname())
    server_id = node_id or _server_id(settings.data_dir)
    locks = GpuLocks(settings.gpu_lock_dir, server_id)
    gpus = NvmlProbe(settings.gpus)
    tallies = Tallies()
    executors = _executors(settings, server_id)
    docker = executors.get("docker")
    store = timed(store, tallies.write_s.add)
    machine = Machine(
        settings,
        PsutilProbe(settings.data_dir),
        gpus,
        locked_elsewhere=locks.held_elsewhere,
        tag_of=process_table.tag,
        live_tags=lambda: _live_tags(store),
        clock=time.time,
    )
    parts = Parts(
        settings=settings,
        store=store,
        executors=executors,
        machine=machine,
        hub=Hub(),
        node_id=server_id,
        clock=time.time,
        random=secrets.token_bytes,
        board=Board(settings.history_size),
        event_files=TensorBoardFiles(),
        checkpoint_check=CheckpointProgram(),
        node_meter=PsutilMeter(settings.data_dir),
        gpu_meter=gpus,
        kernel_log=KernelLog(),
        tallies=tallies,
        images=docker.images if isinstance(docker, DockerExecutor) else None,
    )
    return Yard(parts, process_table.tag)


def _deliverer(settings: Settings, store: Store) -> Deliverer:
    senders: dict[str, Sender] = {
        "webhook": WebhookSender(),
        "feishu": FeishuSender(settings.notify_lang),
        "apprise": AppriseSender(settings.notify_lang),
    }
    name = _server_id(settings.data_dir)
    return Deliverer(store, name, senders, settings.notify_retry_delays)


def _executors(settings: Settings, server_id: str) -> dict[str, Executor]:
    for name in settings.executors:
        if name not in ("local", "docker", "ray"):
            raise errors.BadSettings(
                name="executors",
                why=f"there is no executor '{name}'; choose of local, docker, ray",
            )
    # Preparations and runners of containers are processes of this machine: it is always there.
    local = LocalExecutor(settings.data_dir, server_id, settings.gpu_lock_dir)
    made: dict[str, Executor] = {"local": local}
    if _wants_docker(settings):
        options = _docker_options(settings)
        made["docker"] = DockerExecutor(local, settings.data_dir, server_id, options)
    if "ray" in settings.executors:
        ray = RayExecutor(settings.data_dir, _ray_owner(settings, server_id), _ray(settings))
        local.guests.append(ray)
        made["ray"] = ray
    return made


def _ray(settings: Settings) -> RayOptions:
    return RayOptions(
        address=settings.ray_address,
        python=settings.ray_python,
        node_dir=settings.ray_node_dir,
        token_path=settings.ray_token_path,
        allow_insecure=settings.allow_insecure_ray,
        shared=settings.store_url.startswith("postgresql:"),
        gpus=settings.gpus,
    )


def _ray_owner(settings: Settings, server_id: str) -> str:
    """Whose the attempts in a cluster are: those of one database belong together."""
    if not settings.database_url.startswith("postgresql:"):
        return server_id
    database = settings.database_url.rpartition("@")[2].partition("?")[0]
    return "yard-" + hashlib.sha256(database.encode()).hexdigest()[:12]


def _wants_docker(settings: Settings) -> bool:
    """Also where no engine is yet: one that is started later is found, and until then jobs with an
    image say where it was looked for."""
    return "docker" in settings.executors or settings.docker_host != engine_sockets.OFF


def _docker_options(settings: Settings) -> DockerOptions:
    host = settings.docker_host
    return DockerOptions(
        sockets=tuple(engine_sockets.candidates(host, os.environ, os.getuid())),
        other_sockets=tuple(engine_sockets.usual(os.environ, os.getuid())),
        network=settings.docker_network,
        user=settings.docker_user,
        shm_mb=int(settings.docker_shm_gb * 1024),
        mounts=settings.docker_mounts,
        pull=settings.docker_pull,
    )


def _live_tags(store: Store) -> set[int]:
    with store.read() as reader:
        return {attempt.tag for attempt in reader.live_attempts()}


def _server_id(data_dir: Path) -> str:
    """Who this server is, for as long as its data directory lives."""
    path = data_dir / "server.id"
    with contextlib.suppress(FileNotFoundError):
        known = path.read_text().strip()
        if known:
            return known
    made = "node-" + secrets.token_hex(6)
    path.write_text(made + "\n")
    return made


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With the protocol named, the event loop turns Nagle's delay off.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except socket.gaierror as error:
        raise errors.BadSettings(name="host", why=str(error)) from error
    except OSError as error:
        raise errors.AddressInUse(
            host=settings.host, port=settings.port, why=error.strerror
        ) from error
    listening.listen(2048)
    return listening


def _check_keys(settings: Settings, yard: Yard) -> None:
    """Before anything is adopted or started."""
    yard.key_ring.ensure_local(settings.data_dir)
    if settings.host not in _LOOPBACK and not yard.key_ring.made_by_people():
        raise errors.KeysRequired(host=settings.host)


def _client_url(settings: Settings) -> str:
    """Where clients of this machine reach it, also when it listens on every address."""
    if settings.host in ("0.0.0.0", "::"):
        return f"http://127.0.0.1:{settings.port}"
    return settings.url


def _login_link(yard: Yard, settings: Settings) -> str:
    """Said, never logged: whoever reads it first is let in."""
    actor = yard.authenticate(yard.key_ring.ensure_local(settings.data_dir))
    assert actor is not None  # made a moment ago
    token = yard.logins.make_link(actor).token
    url = _client_url(settings) + settings.root_path
    return f"Open {url}/login#token={token} (once, within 10 minutes)"


class _Http(uvicorn.Server):
    """Is told when to end; the original looks ten times a second, which an idle server feels."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # this count means: the Date header is due
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), _DATE_S)

    def end(self) -> None:
        self.should_exit = True
        self._ending.set()


class _Serving:
    """The HTTP server and the way it ends."""

    def __init__(self, settings: Settings, yard: Yard, listening: socket.socket) -> None:
        self._settings = settings
        self._yard = yard
        self._listening = listening
        config = uvicorn.Config(
            create_app(yard, settings),
            loop="uvloop",
            http="httptools",
            ws="websockets-sansio",
            ws_max_size=_SOCKET_MESSAGE_BYTES,
            ws_ping_interval=_PING_S,
            ws_ping_timeout=_PONG_S,
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_STREAM_GRACE_S,
            timeout_keep_alive=75,
        )
        self._http = _Http(config)
        self._signals = 0
        self._told = asyncio.Event()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signalled)
        # Its own signal handlers would end it before the jobs are ended.
        serving = asyncio.create_task(self._http._serve([self._listening]))
        url = _client_url(self._settings)
        server_log.of().info("Runyard listens on {}", url)
        if not sys.stderr.isatty():  # the log line went to the file only
            print(f"Runyard listens on {url}", flush=True)
        if self._settings.login_link == "print":
            print(await asyncio.to_thread(_login_link, self._yard, self._settings), flush=True)
        waiting = asyncio.create_task(self._told.wait())
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        await self._shut_down()
        self._yard.hub.close()
        self._http.end()
        await serving
        server_log.of().info("Runyard has stopped")
        return 0

    def _signalled(self) -> None:
        self._signals += 1
        self._told.set()

    async def _shut_down(self) -> None:
        """No new starts; then, unless they are kept, end what runs. A second signal: by force."""
        runtime = self._yard.runtime
        if self._settings.on_shutdown == "keep":
            runtime.stop_dispatching()
            server_log.of().info(
                "shutting down; running jobs go on and are adopted at the next start"
            )
            return
        await asyncio.to_thread(runtime.end_all, lambda: self._signals > 1)
