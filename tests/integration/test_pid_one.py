"""`runyard server` as process 1 of a PID namespace, as it is in a container."""

import os
import shutil
import signal
import subprocess

import pytest

from runyard.supervisor import process_table
from yards import RunningYard, Truth, alive, stat, until

PREFIX = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
if os.getuid() != 0:
    PREFIX[1:1] = ["--user", "--map-current-user"]


@pytest.fixture(scope="module", autouse=True)
def possible():
    if not shutil.which("unshare"):
        pytest.skip("there is no unshare here")
    done = subprocess.run([*PREFIX, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no PID namespace can be made here: {done.stderr.strip()}")


class Contained(RunningYard):
    """Its process is `unshare`, whose only child is process 1 inside."""

    def spawn(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        argv = [*PREFIX, self.python, "-m", "runyard", "server", "--port", self.port]
        argv += ["--data-dir", self.data, *self.flags]
        with open(self.folder / "server.out", "ab") as out:
            self.process = subprocess.Popen(
                [str(word) for word in argv],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self.env,
            )
        return self.process

    @property
    def init(self):
        return until(lambda: process_table.children(self.process.pid))[0]

    @property
    def server(self):
        """The child of process 1 that is neither keeper nor a leftover."""
        for pid in process_table.children(self.init):
            words = process_table.command_line(pid).split(b"\0")
            if b"server" in words and alive(pid):
                return pid
        return None

    def tell(self, number=signal.SIGTERM):
        os.kill(self.init, number)

    def stop(self):
        """`unshare` kills its child, and the kernel everything inside."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)
        super().stop()


@pytest.fixture
def make_contained(tmp_path):
    made = []

    def make(*flags, **options):
        made.append(Contained(tmp_path / f"yard{len(made)}", *flags, **options))
        return made[-1]

    yield make
    for yard in made:
        yard.stop()


@pytest.fixture
def truth(tmp_path):
    made = Truth(tmp_path / "truth")
    yield made
    made.close()


LOOP = "while :; do sleep 0.05; done"


def hold(truth, then="exec sleep 600", trap=":"):
    """What a signal does is settled before it says that it is up."""
    return ["sh", "-c", f"exec 9>{truth.path}; {trap}; echo up >&9; {then}"]


def up(truth, count=1):
    until(lambda: truth.held() and truth.data.count(b"up") == count, words=lambda: truth.data)


def test_killed_server_is_started_again_and_adopts(make_contained, truth, tmp_path):
    """R42: the container lives on, the job too, and its exit code is right."""
    yard = make_contained().start()
    go = tmp_path / "go"
    ref = yard.submit(hold(truth, f"while [ ! -e {go} ]; do sleep 0.05; done; exit 7"))
    up(truth)
    yard.wait(ref, "running")
    for _ in range(2):
        before = yard.server
        assert before != yard.init
        os.kill(before, signal.SIGKILL)
        until(lambda was=before: yard.server not in (None, was) and yard.up(), 60, yard.said)
    assert "ended by signal 9" in yard.said()
    assert truth.held()
    go.touch()
    assert yard.wait(ref, "failed")["reason"]["params"]["code"] == 7
    assert len(yard.attempts(ref)) == 1
    yard.tell()
    assert yard.process.wait(60) == 0, yard.said()


def test_sigterm_ends_everything(make_contained, truth):
    """R51: `stop`, the default: cancelled with grace, exit 0."""
    yard = make_contained().start()
    refs = [yard.submit(hold(truth), grace_s=30) for _ in range(3)]
    up(truth, 3)
    yard.tell()
    assert yard.process.wait(60) == 0, yard.said()
    assert not truth.held()
    yard.start()
    for ref in refs:
        job = yard.job(ref)
        assert (job["status"], job["reason"]["code"]) == ("cancelled", "shutdown")


def test_kept_jobs_are_told_and_tried_again(make_contained, truth, tmp_path):
    """R51: `keep` in a container: they cannot run on, so they have their grace, and their next
    attempt comes by itself."""
    yard = make_contained("--on-shutdown", "keep").start()
    saved = tmp_path / "saved"
    trap = f"trap 'echo x >>{saved}; exit 0' TERM"
    ref = yard.submit(hold(truth, LOOP, trap), grace_s=30, max_retries=1)
    up(truth)
    yard.wait(ref, "running")
    yard.tell()
    assert yard.process.wait(60) == 0, yard.said()
    assert saved.read_text() == "x\n"
    assert not truth.held()
    yard.start()
    up(truth, 2)
    yard.wait(ref, "running")
    first, second = yard.attempts(ref)
    assert (first["end"], second["status"]) == ("lost", "running")
    assert yard.cancel(ref).body["status"] == "cancelled"


def test_a_second_signal_does_not_wait(make_contained, truth):
    yard = make_contained("--on-shutdown", "keep").start()
    ref = yard.submit(hold(truth, LOOP, "trap '' TERM"), grace_s=600)
    up(truth)
    yard.wait(ref, "running")
    yard.tell()
    until(lambda: "is told to end" in yard.said(), words=yard.said)
    yard.tell(signal.SIGINT)
    assert yard.process.wait(60) == 0, yard.said()
    until(lambda: not truth.held())


def test_the_end_of_the_container_is_recorded(make_contained, truth):
    """R42: another PID namespace: nothing is signalled, the attempt is lost, the job goes on."""
    yard = make_contained("--on-shutdown", "keep").start()
    ref = yard.submit(hold(truth), max_retries=1)
    up(truth)
    yard.wait(ref, "running")
    os.kill(yard.init, signal.SIGKILL)
    yard.process.wait(60)
    until(lambda: not truth.held())
    yard.start()
    up(truth, 2)
    first, _ = yard.attempts(ref)
    assert (first["end"], first["exit_code"], first["cause"]) == (
        "lost",
        None,
        "lost_host_restart",
    )
    assert yard.cancel(ref).body["status"] == "cancelled"


def test_orphans_are_reaped(make_contained):
    """Those of a shell that somebody opened in the container."""
    yard = make_contained().start()
    inside = ["nsenter", "--target", str(yard.init), "--pid", "--mount"]
    if os.getuid() != 0:
        inside.insert(1, "--user")
        inside.insert(2, "--preserve-credentials")
    script = "(sleep 0.2; true) & (sleep 0.1) & (exit 3) & exit 0"
    subprocess.run([*inside, "sh", "-c", script], check=True, stdin=subprocess.DEVNULL)

    def settled():
        below = process_table.children(yard.init)
        names = [process_table.read(f"/proc/{pid}/comm") or b"" for pid in below]
        states = [found[0] for pid in below if (found := stat(pid))]
        return not {b"sleep\n", b"sh\n"} & {*names} and "Z" not in states

    until(settled)
    assert yard.up()


def test_exit_code_kept(make_contained):
    """A server that refuses to start is not started again."""
    yard = make_contained("--host", "0.0.0.0")
    assert yard.spawn().wait(60) == 1
    assert yard.said().count("keys_required") == 1


def test_exit_code_of_a_server_that_does_not_end_in_order(make_contained, truth):
    yard = make_contained().start()
    yard.submit(hold(truth, LOOP, "trap '' TERM"), grace_s=600)
    up(truth)
    yard.tell()
    until(lambda: "shutting down" in log_of(yard), words=lambda: log_of(yard))
    os.kill(yard.server, signal.SIGKILL)
    until(lambda: "is told to end" in yard.said(), words=yard.said)
    yard.tell()
    assert yard.process.wait(60) == 128 + signal.SIGKILL
    until(lambda: not truth.held())


def log_of(yard):
    return "".join(path.read_text() for path in (yard.data / "logs").glob("*.log*"))
