"""A throwaway PostgreSQL: one server per session, a fresh database for every test that asks."""

from __future__ import annotations

import glob
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import pytest

from yards import free_port

_TRIES = 5
_READY_S = 60


class PostgresServer:
    """Runs in the foreground as our child, so that it is ended by its own pid, never by name."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}"

    def make(self) -> None:
        if self._user:
            shutil.chown(self._folder, self._user, self._user)
        command = ["initdb", "-D", self._data, "-A", "trust", "-U", "postgres", "--no-sync"]
        command += ["-E", "UTF8", "--no-locale"]
        made = subprocess.run(
            self._as_user(command), capture_output=True, text=True, cwd="/", check=False
        )
        assert made.returncode == 0, made.stdout + made.stderr

    def start(self, port: int | None = None) -> None:
        for _ in range(_TRIES):
            self.port = port or free_port()
            if self._start_on(self.port):
                return
        raise AssertionError(f"PostgreSQL does not start: {self._log.read_text()[-2000:]}")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends it in order, SIGQUIT at once, as a crash would."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _as_user(self, command: list[str]) -> list[str]:
        program = [str(self._programs / command[0]), *command[1:]]
        return ["runuser", "-u", self._user, "--", *program] if self._user else program

    def _start_on(self, port: int) -> bool:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "fsync": "off",
            "full_page_writes": "off",
            "max_connections": 100,
            "shared_buffers": "16MB",
        }
        command = [str(self._programs / "postgres"), "-D", self._data]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                user=self._user,
                group=self._user,
                extra_groups=[] if self._user else None,
                start_new_session=True,  # Ctrl-C on the tests is not for it
            )
        return self._is_ready()

    def _is_ready(self) -> bool:
        import psycopg  # an extra: without it these tests are skipped

        assert self._process is not None
        until = time.monotonic() + _READY_S
        while time.monotonic() < until and self._process.poll() is None:
            try:
                psycopg.connect(self.url + "/postgres", connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                return True
        self.stop(signal.SIGQUIT)
        return False


def _programs() -> Path:
    if importlib.util.find_spec("psycopg") is None:
        _is_missing("psycopg is not installed (the extra 'postgres')")
    found = shutil.which("postgres")
    candidates = [str(Path(found).resolve().parent)] if found else []
    candidates += sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    for candidate in candidates:
        if os.path.exists(os.path.join(candidate, "initdb")):
            return Path(candidate)
    _is_missing("PostgreSQL is not installed")


def _is_missing(what: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


def _new_server():
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="runyard-postgres-"))
    server = PostgresServer(programs, folder)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server():
    """Shared by all tests of the session: never stop it."""
    yield from _new_server()


@pytest.fixture
def own_postgres_server():
    """For one test, which may stop it and start it again."""
    yield from _new_server()


@pytest.fixture
def postgres_url(postgres_server):
    """The URL of a fresh, empty database."""
    import psycopg

    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(postgres_server.url + "/postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{postgres_server.url}/{name}"
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
