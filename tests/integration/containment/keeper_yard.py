"""A data directory with a real keeper, and the server's side of it, for tests."""

import contextlib
import json
import os
import random
import select
import socket
import sys
import time
import uuid

from runyard.supervisor import journal, keeper_client, process_table, protocol, stop_request

HERE = os.path.dirname(os.path.abspath(__file__))
WAIT_S = 45.0


def wait_for(condition, what, timeout=WAIT_S):
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {timeout} s for {what}"
        time.sleep(0.005)


class Yard:
    def __init__(self, data_dir, python=None):
        self.data_dir = str(data_dir)
        self.name = uuid.uuid4().hex[:8]  # attempt ids are never used twice, in no yard
        os.makedirs(f"{self.data_dir}/attempts", exist_ok=True)
        self.directory = os.open(self.data_dir, os.O_RDONLY)
        self.news_socket = None
        self.listen()
        self.keeper = keeper_client.KeeperClient(self.data_dir, python=python)
        self.specs = {}
        self.heard = []
        self._count = 0

    def listen(self):
        self.news_socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.news_socket.bind(f"/proc/self/fd/{self.directory}/{protocol.NEWS_SOCKET}")

    def stop_listening(self):
        """As a server that died."""
        self.news_socket.close()
        os.unlink(f"{self.data_dir}/{protocol.NEWS_SOCKET}")

    def folder(self, attempt_id):
        return protocol.attempt_folder(self.data_dir, attempt_id)

    def prepare(self, argv, *, env=None, **fields):
        """An attempt on disk that nobody was told of."""
        self._count += 1
        attempt_id = f"job-{self.name}t{self._count}.1"
        folder = self.folder(attempt_id)
        spec = {
            "attempt_id": attempt_id,
            "job_ref": attempt_id.partition(".")[0],
            "tag": random.getrandbits(60) | 1 << 60,
            "argv": argv,
            "env": {
                "PATH": os.environ["PATH"],
                "TMPDIR": f"{folder}/tmp",
                protocol.MARKER: attempt_id,
                protocol.STOP_FILE: f"{folder}/stop-requested",
                **(env or {}),
            },
            "cwd": "/",
            "grace_s": 60.0,
            "leftover_grace_s": 0.3,
            **fields,
        }
        journal.create(folder, spec)
        self.specs[attempt_id] = spec
        return attempt_id

    def start(self, argv, **fields):
        attempt_id = self.prepare(argv, **fields)
        self.keeper.run(attempt_id)
        return attempt_id

    def start_python(self, code, *arguments, **fields):
        return self.start([sys.executable, "-I", "-S", "-c", code, *arguments], **fields)

    def start_shape(self, shape, then="stay", **fields):
        """A tree of workloads.py that stands; its FIFO tells when all of it is dead."""
        alive = Alive(self.data_dir, f"alive{self._count}")
        go = f"{self.data_dir}/go{self._count}"
        os.mkfifo(go)
        environment = {"ALIVE": alive.path, "GO": go, **fields.pop("env", {})}
        command = [sys.executable, "-I", "-S", f"{HERE}/workloads.py", shape, then]
        attempt_id = self.start(command, env=environment, **fields)
        alive.wait_ready()
        return attempt_id, alive, go

    def stop(self, attempt_id, *, seq=1, cause="user", grace_s=60.0, nudge=True):
        folder = self.folder(attempt_id)
        stop_request.write(
            folder,
            seq=seq,
            cause=cause,
            grace_s=grace_s,
            requested_by="tester",
            requested_at=time.time(),
        )
        return stop_request.nudge(folder) if nudge else None

    def journal(self, attempt_id):
        return journal.read(self.folder(attempt_id))

    def wait_job(self, attempt_id):
        """Until the program runs (news `started`)."""
        return self.hear(attempt_id, "started")

    def wait_end(self, attempt_id, timeout=WAIT_S):
        record = wait_for(lambda: self.journal(attempt_id).exit, f"end of {attempt_id}", timeout)
        self.check_ended(attempt_id)
        return record

    def check_ended(self, attempt_id):
        """What holds after every end: one record, no process, nothing in temp."""
        records = [r for r in self.journal(attempt_id).records if r["kind"] == "exit"]
        assert len(records) == 1
        tag = self.specs[attempt_id]["tag"]
        assert self.tagged(tag) == []
        assert not os.path.exists(f"{self.folder(attempt_id)}/tmp")

    def tagged(self, tag):
        return [
            pid
            for pid in process_table.pids()
            if process_table.tag(pid) == tag and process_table.alive(pid)
        ]

    def hear(self, attempt_id, kind, timeout=WAIT_S):
        """The next piece of news of that kind."""
        deadline = time.monotonic() + timeout
        while True:
            for piece in self.heard:
                if piece["attempt_id"] == attempt_id and piece["kind"] == kind:
                    return piece
            self.news_socket.settimeout(max(0.01, deadline - time.monotonic()))
            self.heard.append(json.loads(self.news_socket.recv(1 << 20)))

    def supervisor_pid(self, attempt_id):
        return wait_for(lambda: self.journal(attempt_id).supervisor, "supervisor record")["pid"]

    def keeper_pid(self):
        return self.keeper.hello()["pid"]

    def log(self, attempt_id):
        try:
            with open(f"{self.folder(attempt_id)}/out.log", "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def close(self):
        """End what still runs, then the keeper, and see that it goes."""
        for attempt_id in self.specs:
            if os.path.exists(self.folder(attempt_id)) and self.journal(attempt_id).exit is None:
                self.stop(attempt_id, seq=1000, grace_s=0.0)
        locked = lambda: keeper_client.keeper_locked(self.data_dir)  # noqa: E731
        if locked():
            self.keeper.leave()
        wait_for(lambda: not locked(), "the keeper to leave")
        self.keeper.close()
        self.news_socket.close()
        os.close(self.directory)


class Alive:
    """The read end of a FIFO that every process of a tree holds open."""

    def __init__(self, folder, name):
        self.path = f"{folder}/{name}"
        os.mkfifo(self.path)
        self.fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.ready = False

    def wait_ready(self):
        wait_for(lambda: self._read() == b"r", "the tree to stand")

    def wait_all_dead(self, timeout=WAIT_S):
        wait_for(lambda: self._read() == b"", "all of the tree to be dead", timeout)
        os.close(self.fd)

    def all_dead_now(self):
        dead = self._read() == b""
        os.close(self.fd)
        return dead

    def _read(self):
        try:
            return os.read(self.fd, 1)
        except BlockingIOError:
            return None


@contextlib.contextmanager
def died(pid):
    """Asks the kernel whether this very process is dead, whatever its number is used for now."""
    pidfd = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    try:
        yield lambda: bool(poll.poll(0))
    finally:
        os.close(pidfd)
