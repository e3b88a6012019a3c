"""However a client ends: the job first, then the services it ran here, then the client itself."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from yards import SMALL, RunningYard, Truth, alive, until

PROGRAM = Path(__file__).parents[1] / "local_service.py"
FLAGS = ("--cpus", "0.01", "--mem", "10MB", "--gpus", "0", "--retries", "0")
BOUND_S = 60  # what "bounded" means on a loaded machine


class Stage:
    """A job and a service that write down what happens to them, and the clients that run them."""

    def __init__(self, yard, folder):
        self.yard = yard
        self.folder = folder
        self.story = folder / "story"
        self.truth = Truth(folder / "truth")
        self.environment = yard.env | {
            "RUNYARD_URL": yard.url,
            "RUNYARD_API_KEY": yard.key,
            "XDG_STATE_HOME": str(folder / "state"),
        }
        self.started = []
        self.earlier = {row["job_id"] for row in yard.ask("/jobs")}

    def command(self, kind, *rest):
        return [sys.executable, str(PROGRAM), kind, str(self.story), str(self.truth.path), *rest]

    def service(self, *manner):
        return " ".join(["reward=exec", *self.command("service", "{port}", *manner)])

    def run(self, *flags, service=(), command=None, **options):
        words = ["run", *FLAGS, *flags]
        words += ["--local-service", self.service(*service)] if service is not None else []
        words += ["--", *(command or self.command("job"))]
        return self.spawn([sys.executable, "-m", "runyard", *map(str, words)], **options)

    def script(self, body, *arguments, **options):
        """A Python program of a user; `client`, `job` and `services` are there."""
        head = f"""
import os, signal, sys, threading, time, runyard
client = runyard.Client()
job = dict({SMALL!r}, command={self.command("job")!r}, grace_s=30)
services = [runyard.LocalService("reward", {self.command("service", "{port}")!r})]
def begun():
    while "job begin" not in (open({str(self.story)!r}).read() if os.path.exists(
        {str(self.story)!r}) else ""): time.sleep(0.05)
"""
        return self.spawn([sys.executable, "-c", head + body, *arguments], **options)

    def spawn(self, argv, **options):
        process = subprocess.Popen(
            argv,
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # what follows a line that was read is left to `communicate`
            **options,
        )
        self.started.append(process)
        return process

    def events(self):
        if not self.story.exists():
            return []
        return [line.rsplit(" ", 1)[0] for line in self.story.read_text().splitlines()]

    def times(self):
        lines = self.story.read_text().splitlines()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines}

    def jobs(self):
        return [row for row in self.yard.ask("/jobs") if row["job_id"] not in self.earlier]

    def job(self):
        [row] = self.jobs()
        return row

    def runs(self):
        """Its log may be read before the record says so."""
        return self.yard.wait(self.job()["job_id"], "running")

    def nothing_lives(self):
        until(lambda: not self.truth.held(), words="something lives on")

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait(10)
            process.stdout.close()
            process.stderr.close()
        until(lambda: not self.truth.held(), words="something lives on")
        self.truth.close()

    def clear(self):
        for row in self.jobs():
            if row["status"] not in ("completed", "failed", "cancelled"):
                self.yard.api("POST", f"/jobs/{row['job_id']}/force-kill?wait=20")
        self.close()


@pytest.fixture(scope="module")
def shared_yard(tmp_path_factory):
    yard = RunningYard(tmp_path_factory.mktemp("shutdown")).start()
    yield yard
    yard.stop()


@pytest.fixture
def stage(shared_yard, tmp_path):
    made = Stage(shared_yard, tmp_path)
    yield made
    made.clear()


@pytest.fixture
def lone_stage(yard, tmp_path):
    """On a server of its own, which the test may kill."""
    made = Stage(yard, tmp_path)
    yield made
    made.clear()


def begun(process):
    """The job runs; the address it was given."""
    line = process.stdout.readline().split()
    assert line[:1] == [b"begun"], process.stderr.read()
    return line[1].decode()


def done(process, seconds=BOUND_S):
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err.decode()


def in_order(text, *parts):
    """Each part occurs, after the one before."""
    place = 0
    for part in parts:
        found = text.find(part, place)
        assert found >= 0, f"{part!r} is not there (after the others) in: {text}"
        place = found + len(part)


# signals


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_job_ends_before_the_service_and_both_before_the_client(stage, number, expected):
    """R50"""
    process = stage.run("--grace", "30s", "--ports", "2")
    url = begun(process)
    assert url.startswith("http://127.0.0.1:")
    process.send_signal(number)
    code, _, err = done(process)
    left_at = time.time()
    assert code == expected
    assert not stage.truth.held()
    assert stage.events() == ["service begin", "job begin", "job end", "service end"]
    times = stage.times()
    assert times["job end"] <= times["service end"] <= left_at
    job = stage.job()
    assert job["status"] == "cancelled"
    # The proof was there before the service was told to end.
    receipt = stage.yard.ask(f"/jobs/{job['job_id']}/receipt")
    assert len(receipt["ports"]) == 2
    ports = ", ".join(f"port {port}" for port in receipt["ports"])
    in_order(
        err,
        "local service reward is ready",
        "submitted",
        "cancelling",
        "cancelled: its process ended",
        f"proof: {receipt['proof']}",
        f"given back: {ports}",
        "local service reward stopped",
    )


def test_the_same_in_chinese(stage):
    stage.environment["RUNYARD_LANG"] = "zh"
    process = stage.run("--grace", "30s")
    begun(process)
    process.terminate()
    code, _, err = done(process)
    assert code == 143
    in_order(err, "本地服务 reward 已就绪", "正在取消", "证明", "本地服务 reward 已在")


def test_a_signal_before_the_service_is_ready_starts_no_job(stage):
    """R50"""
    command = stage.command("service", "1")[:-1]
    never = f"reward=exec {' '.join([*command, '$(($RUNYARD_PORT + 1))'])}"
    words = ["run", *FLAGS, "--local-service", never, "--", "true"]
    process = stage.spawn([sys.executable, "-m", "runyard", *words])
    until(lambda: "service begin" in stage.events(), words="the service did not begin")
    process.send_signal(signal.SIGINT)
    code, _, err = done(process)
    assert code == 130
    assert not stage.truth.held()
    assert stage.jobs() == []
    assert "local service reward stopped" in err


def test_a_signal_while_the_job_waits_cancels_it(stage):
    """R50"""
    process = stage.run("--hold")
    assert any(b"held" in line for line in iter(process.stderr.readline, b""))
    process.terminate()
    code, _, err = done(process)
    assert code == 143
    in_order(err, "cancelled before it started", "local service reward stopped")
    assert stage.job()["status"] == "cancelled"
    assert "job begin" not in stage.events()
    assert not stage.truth.held()


def test_a_second_signal_kills_the_job_without_its_grace(stage):
    """R50"""
    script = 'exec 9>"$1"; trap "" TERM; echo begun x; exec sleep 2000'
    command = ["sh", "-c", script, "sh", stage.truth.path]
    process = stage.run("--grace", "1000s", command=command)
    begun(process)
    process.send_signal(signal.SIGINT)
    until(lambda: stage.job()["status"] == "cancelling", words="no cancel")
    process.send_signal(signal.SIGINT)
    code, _, err = done(process)
    assert code == 130
    in_order(err, "cancelling", "killing", "cancelled: ", "local service reward stopped")
    assert not stage.truth.held()


def test_a_service_that_ignores_the_request_is_killed_with_all_it_started(stage):
    """R50: at once by another signal."""
    process = stage.run(service=["stubborn"])
    begun(process)
    process.terminate()
    assert any(b"cancelled: " in line for line in iter(process.stderr.readline, b""))
    process.terminate()
    code, _, err = done(process)
    assert code == 143
    assert "local service reward stopped" in err
    assert not stage.truth.held()


def test_hangup_leaves_a_job_alone_that_needs_nothing_here(stage):
    process = stage.run(service=None)
    begun(process)
    process.send_signal(signal.SIGHUP)
    code, _, err = done(process)
    assert code == 129
    assert "runyard logs -f" in err
    stage.runs()


def test_hangup_ends_a_job_that_needs_a_service_of_this_client(stage):
    """R50"""
    process = stage.run()
    begun(process)
    process.send_signal(signal.SIGHUP)
    assert done(process)[0] == 129
    assert stage.job()["status"] == "cancelled"
    assert stage.events()[2:] == ["job end", "service end"]
    assert not stage.truth.held()


def test_signals_that_were_ignored_at_the_start_stay_ignored(stage):
    """As under nohup, or in the background of a script."""

    def ignoring():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    process = stage.run(preexec_fn=ignoring)
    begun(process)
    stage.runs()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)  # nothing must happen
    assert process.poll() is None
    assert stage.job()["status"] == "running"
    process.terminate()
    assert done(process)[0] == 143
    assert stage.events()[2:] == ["job end", "service end"]


# the server goes, the client goes


def test_a_dead_server_does_not_block_the_exit(lone_stage):
    """R53"""
    process = lone_stage.run()
    begun(process)
    lone_stage.yard.kill9()
    process.terminate()
    code, _, err = done(process)
    assert code == 143
    in_order(err, "runyard cancel job-", "local service reward stopped")
    assert "service end" in lone_stage.events()
    lone_stage.yard.start()


def test_a_killed_client_leaves_no_service_behind(stage):
    """R56"""
    process = stage.run("--lease", "1000s")
    begun(process)
    process.kill()
    process.wait(10)
    until(lambda: "service end" in stage.events(), words="the service lives on")
    stage.runs()


def test_a_killed_client_without_a_lease_leaves_its_job_running(stage):
    """R56: nobody asked for its end, so it stays, and can be cancelled as any other."""
    process = stage.run(service=None)
    begun(process)
    ref = stage.runs()["job_id"]
    process.kill()
    process.wait(10)
    stage.yard.wait(stage.yard.submit(["true"]), "completed")  # the server had time to notice
    job = stage.yard.job(ref)
    assert (job["status"], job["lease_s"]) == ("running", None)
    assert stage.truth.held()
    assert stage.yard.cancel(ref).body["status"] == "cancelled"
    assert not stage.truth.held()


def lease_end(yard, job):
    with contextlib.closing(
        sqlite3.connect(f"file:{yard.data}/runyard.db?mode=ro", uri=True)
    ) as db:
        [[at]] = db.execute("select expires_at from leases where job_id = ?", [job["id"]])
    return at


def test_the_lease_of_a_killed_client_runs_out(stage):
    """R56"""
    process = stage.run("--lease", "6s", "--grace", "30s")
    begun(process)
    job = stage.runs()
    ref, first = job["job_id"], lease_end(stage.yard, job)
    until(lambda: lease_end(stage.yard, job) > first, words="nobody renews it")
    assert stage.job()["status"] == "running"
    process.kill()
    process.wait(10)
    assert stage.yard.wait(ref, "cancelled", seconds=BOUND_S)["reason"]["code"] == "lease_lost"
    stage.nothing_lives()


def test_a_job_with_a_local_service_has_a_lease(stage):
    process = stage.run()
    begun(process)
    job = stage.yard.job(stage.job()["job_id"])
    assert job["lease_s"] == 60
    [service] = job["services"]
    assert service["name"] == "reward"
    process.terminate()
    assert done(process)[0] == 143


def test_a_service_that_ends_takes_the_job_with_it(stage):
    go = stage.folder / "go"
    os.mkfifo(go)
    serving = "import http.server as h, os, threading; s = h.HTTPServer(('127.0.0.1', "
    serving += "int(os.environ['RUNYARD_PORT'])), h.SimpleHTTPRequestHandler); "
    serving += f"waits = lambda: open('{go}').close() or os._exit(9); "
    serving += "threading.Thread(target=waits).start(); s.serve_forever()"
    words = ["run", *FLAGS, "--local-service", f'reward=exec {sys.executable} -c "{serving}"']
    process = stage.spawn([sys.executable, "-m", "runyard", *words, "--", *stage.command("job")])
    begun(process)
    os.close(os.open(go, os.O_WRONLY))
    code, _, err = done(process)
    assert code == 1
    in_order(err, "local service reward ended with exit code 9", "cancelled", "log")
    assert stage.job()["status"] == "cancelled"
    assert not stage.truth.held()


# Python programs


def test_leaving_a_session_cancels_what_it_ran(stage):
    """R53"""
    process = stage.script(
        """
with client.session(job, local_services=services) as session:
    begun()
print(session.job.status)
"""
    )
    code, out, err = done(process)
    assert (code, out) == (0, b"cancelled\n"), err
    assert stage.events()[2:] == ["job end", "service end"]
    assert not stage.truth.held()
    in_order(err, "cancelling", "cancelled: ", "local service reward stopped")


RUNNING = """
with client.session(job, local_services=services) as session:
    begun()
    print("begun x", flush=True)
    {body}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("raise ValueError('mine')", 1),
        ("sys.exit(7)", 7),
        ("raise KeyboardInterrupt", 130),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(100)", 143),
        ("os.kill(os.getpid(), signal.SIGINT); time.sleep(100)", 130),
        ("os.kill(os.getpid(), signal.SIGHUP); time.sleep(100)", 129),
    ],
)
def test_whatever_ends_the_callers_code_ends_the_job_first(stage, body, expected):
    """R50, R53"""
    process = stage.script(RUNNING.format(body=body))
    code, _, err = done(process)
    if body.startswith(("raise KeyboardInterrupt", "os.kill(os.getpid(), signal.SIGINT")):
        expected = -signal.SIGINT  # how Python itself ends
    assert code == expected, err
    assert stage.job()["status"] == "cancelled"
    assert stage.events()[-2:] == ["job end", "service end"]
    assert not stage.truth.held()


def test_a_program_that_ends_with_a_session_open(stage):
    """R53: nobody left the session, so the interpreter's end does."""
    process = stage.script(
        """
session = client.session(job, local_services=services)
session.open()
begun()
"""
    )
    code, _, err = done(process)
    assert code == 0, err
    assert stage.job()["status"] == "cancelled"
    assert stage.events()[-2:] == ["job end", "service end"]
    assert not stage.truth.held()


def test_a_job_run_by_a_thread_that_does_not_outlive_the_program(stage):
    """R53"""
    process = stage.script(
        """
def follow(): client.run(job, local_services=services)
threading.Thread(target=follow, daemon=True).start()
begun()
"""
    )
    code, _, err = done(process)
    assert code == 0, err
    assert stage.job()["status"] == "cancelled"
    assert stage.events()[-2:] == ["job end", "service end"]
    assert not stage.truth.held()


def test_a_dead_server_does_not_block_the_end_of_a_program(lone_stage):
    """R53"""
    process = lone_stage.script(RUNNING.format(body="sys.stdin.read(); time.sleep(300)"))
    begun(process)
    lone_stage.yard.kill9()
    process.terminate()
    code, _, err = done(process)
    assert code == 143
    assert "Cancel job-" in err
    assert "service end" in lone_stage.events()
    lone_stage.yard.start()


def test_an_exception_out_of_a_handler_while_following(stage):
    """R53: as timeouts made with SIGALRM raise it."""
    process = stage.script(
        """
def late(*_): raise TimeoutError("mine")
signal.signal(signal.SIGALRM, late)
def alarm(): begun(); os.kill(os.getpid(), signal.SIGALRM)
threading.Thread(target=alarm, daemon=True).start()
client.run(job, local_services=services)
"""
    )
    code, _, err = done(process)
    assert code == 1
    assert "TimeoutError: mine" in err
    assert stage.job()["status"] == "cancelled"
    assert not stage.truth.held()


def test_run_of_the_client_raises_what_python_has_for_a_signal(stage):
    """R50"""
    process = stage.script(
        """
before = [signal.getsignal(number) for number in (2, 15, 1)]
try: client.run(job, local_services=services)
except KeyboardInterrupt: print("interrupted")
print(before == [signal.getsignal(number) for number in (2, 15, 1)])
"""
    )
    begun(process)
    process.send_signal(signal.SIGINT)
    code, out, err = done(process)
    assert (code, out) == (0, b"interrupted\nTrue\n"), err
    assert stage.events()[-2:] == ["job end", "service end"]


def test_a_detached_session_leaves_its_job_running(stage):
    process = stage.script("with client.session(job) as session: session.detach()")
    code, _, err = done(process)
    assert code == 0, err
    assert stage.yard.wait(stage.job()["job_id"], "running")


def test_a_job_that_needs_a_service_cannot_be_detached(stage):
    process = stage.script(
        "with client.session(job, local_services=services) as session: session.detach()"
    )
    code, _, err = done(process)
    assert code == 1
    assert "cannot be detached" in err
    assert stage.job()["status"] == "cancelled"


def test_a_fork_of_the_program_ends_nothing(stage):
    process = stage.script(
        RUNNING.format(body="pid = os.fork(); pid or sys.exit(0); os.waitpid(pid, 0)")
        + "    while session.job.refresh().status == 'scheduled': time.sleep(0.05)\n"
        + "    print(session.job.refresh().status)\n"
    )
    code, out, err = done(process)
    assert code == 0, err
    assert b"running" in out


def test_detach_and_submit_refuse_local_services(stage):
    for words in (["run", "-d"], ["submit", "-f", "job.json"]):
        (stage.folder / "job.json").write_text(
            '{"command": "true", "local_services": [{"name": "a", "command": "b"}]}'
        )
        extra = ["--local-service", stage.service()] if words[0] == "run" else []
        rest = ["--", "true"] if words[0] == "run" else []
        process = stage.spawn([sys.executable, "-m", "runyard", *words, *extra, *rest])
        code, _, err = done(process)
        assert code == 2
        assert "end with this client" in err
    assert stage.jobs() == []


# force-kill


@pytest.mark.parametrize("how", ["cancel --now", "force-kill"])
def test_force_kill_takes_no_grace(stage, how):
    """R50: POST .../force-kill and `cancel --now`."""
    script = 'exec 9>"$1"; trap "" TERM; echo $$; exec sleep 1000'
    command = ["sh", "-c", script, "sh", str(stage.truth.path)]
    ref = stage.yard.submit(command, grace_s=1000)
    pid = int(until(lambda: stage.yard.logs(ref), words="no log")[0])
    if how == "force-kill":
        answer = stage.yard.api("POST", f"/jobs/{ref}/force-kill?wait=20", timeout=40)
        assert answer.body["status"] == "cancelled"
    else:
        said = stage.yard.cli("cancel", "--now", ref)
        assert said.returncode == 0
        assert "cancelled: " in said.stdout
    assert not alive(pid)
    assert not stage.truth.held()
    receipt = stage.yard.ask(f"/jobs/{ref}/receipt")
    assert [one["signal"] for one in receipt["signals"]] == ["KILL"]
    assert receipt["seconds"] < 100
