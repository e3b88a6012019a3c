"""runyard run as a process of its own: the log, the exit code, and what signals do to the job."""

import os
import pty
import signal
import subprocess
import sys
import threading
import time

import pytest

from scripted_server import DROP, Reply, ScriptedServer, problem
from yards import POOL, free_port, until

JOB_ID = "job-abc123"


class Life:
    """A job on a scripted server; the test moves it along."""

    def __init__(self, server, *, grace_s=1.0):
        self.server = server
        self.log = {1: b""}
        self.data = {
            "job_id": JOB_ID,
            "name": "n",
            "status": "pending",
            "grace_s": grace_s,
            "reason": {"code": "max_concurrent", "params": {"limit": 2, "running": 2}},
            "wait": {"position": 1},
            "attempt": None,
        }
        self.cancels_on = "cancel"  # or force-kill, or nothing
        server.on("POST", "/jobs", self._submitted)
        server.on("GET", f"/jobs/{JOB_ID}", lambda _: self.data)
        server.on("GET", f"/jobs/{JOB_ID}/wait", self._waited)
        server.on("GET", f"/jobs/{JOB_ID}/logs", self._logs)
        server.on("GET", f"/jobs/{JOB_ID}/attempts", lambda _: self.attempts())
        server.on("POST", f"/jobs/{JOB_ID}/cancel", lambda _: self._stop("cancel"))
        server.on("POST", f"/jobs/{JOB_ID}/force-kill", lambda _: self._stop("force-kill"))
        server.on("POST", f"/jobs/{JOB_ID}/lease", {})

    def start(self, number=1):
        attempt = {"number": number, "status": "running", "end": None, "exit_code": None}
        self.log.setdefault(number, b"")
        self.data = self.data | {"status": "running", "reason": None, "attempt": attempt}

    def write(self, data, number=1):
        self.log[number] += data

    def end(self, status="completed", code=0, sig=None):
        attempt = {"number": max(self.log), "status": "ended", "exit_code": code, "signal": sig}
        reason = {"code": "exit_code", "params": {"code": code}} if code else None
        self.data = self.data | {"status": status, "reason": reason, "attempt": attempt}

    def attempts(self):
        return [{"number": n, "status": "ended", "end": "failed"} for n in sorted(self.log)]

    def asked(self, verb):
        return len(self.server.requests("POST", f"/jobs/{JOB_ID}/{verb}"))

    def _submitted(self, _):
        return Reply(201, {"job_id": JOB_ID, "status": "pending", "submitted_at": time.time()})

    def _waited(self, asked):
        deadline = time.monotonic() + float(asked.query["timeout"][0])
        while self.data["status"] not in ("completed", "failed", "cancelled"):
            if time.monotonic() >= deadline:
                break
            time.sleep(0.01)
        return self.data

    def _logs(self, asked):
        log = self.log.get(int(asked.query["attempt"][0]), b"")
        offset, length = int(asked.query["offset"][0]), int(asked.query["length"][0])
        return Reply(200, log[offset : offset + length], {"X-Log-Size": str(len(log))})

    def _stop(self, verb):
        if verb == self.cancels_on:
            self.end("cancelled", None, 15)
        else:
            self.data = self.data | {"status": "cancelling"}
        return Reply(202, {"job_id": JOB_ID, "status": self.data["status"]})


@pytest.fixture
def server():
    made = ScriptedServer(free_port())  # which nobody gets while it is closed
    yield made
    made.close()


@pytest.fixture
def life(server):
    return Life(server)


@pytest.fixture
def start(server, tmp_path):
    """Starts `runyard run` and ends it with the test."""
    started = []

    def spawn(*words, **options):
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "RUNYARD_URL": server.url,
            "RUNYARD_API_KEY": "secret",
        }
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE} | options
        process = subprocess.Popen(
            [sys.executable, "-m", "runyard", *(words or ("run", "--", "true"))],
            env=environment,
            cwd=tmp_path,
            **{"stderr": subprocess.PIPE, **options},
        )
        started.append(process)
        return process

    yield spawn
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait(60)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def finished(process, seconds=60):
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err.decode()


def following(life, process, text=b"begun\n"):
    """The job runs and the client has shown that it follows it."""
    life.start()
    life.write(text)
    assert process.stdout.readline() == text


def test_the_log_is_exact_and_the_exit_code_the_jobs(life, start):
    data = b"10%\r20%\r\xff\x00\nlast without newline"
    process = start()
    life.start()
    life.write(data)
    life.end("failed", 7)
    code, out, err = finished(process)
    assert (code, out) == (7, data)
    assert f"{JOB_ID} submitted" in err
    assert "exit code 7" in err


@pytest.mark.parametrize(("sig", "code"), [(11, 139), (9, 137)])
def test_a_job_ended_by_a_signal(life, start, sig, code):
    process = start()
    life.start()
    life.end("failed", None, sig)
    assert finished(process)[0] == code


def test_waiting_is_told_in_words(life, start):
    process = start()
    assert b"submitted" in process.stderr.readline()
    assert b"2 of at most 2 jobs run, place 1" in process.stderr.readline()
    life.end()
    assert finished(process)[0] == 0


def test_attempts_are_followed_one_after_the_other(life, start):
    process = start()
    life.start(1)
    life.write(b"first\n")
    assert process.stdout.readline() == b"first\n"
    life.data = life.data | {"status": "retrying", "reason": {"code": "retry_delay", "params": {}}}
    life.data["attempt"] = life.data["attempt"] | {"status": "ended"}
    assert any(b"attempt 1" in line for line in iter(process.stderr.readline, b""))
    life.start(2)
    life.write(b"second\n", 2)
    life.end()
    assert finished(process)[:2] == (0, b"second\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_cancels_the_job(life, start, number, code):
    """R50"""
    process = start()
    following(life, process)
    process.send_signal(number)
    got, _, err = finished(process)
    assert got == code
    assert life.asked("cancel") == 1
    assert life.asked("force-kill") == 0
    assert f"{JOB_ID} cancelled" in err


def test_a_second_signal_kills_without_grace(life, start):
    life.cancels_on = "force-kill"
    life.data["grace_s"] = 40
    process = start()
    following(life, process)
    process.send_signal(signal.SIGINT)
    until(lambda: life.asked("cancel"), words="no cancel")
    process.send_signal(signal.SIGINT)
    assert finished(process)[0] == 130
    assert life.asked("force-kill") == 1


def test_a_third_signal_leaves_at_once(life, start):
    life.cancels_on = ""
    life.data["grace_s"] = 40
    process = start()
    following(life, process)
    for verb in ("cancel", "force-kill"):
        process.send_signal(signal.SIGINT)
        until(lambda verb=verb: life.asked(verb), words=verb)
    process.send_signal(signal.SIGINT)
    code, _, err = finished(process, 40)  # less than the grace
    assert code == 130
    assert "still cancelling" in err


def test_the_wait_for_the_proof_is_bounded(life, start):
    """R53"""
    life.cancels_on = ""
    life.data["grace_s"] = -9.5  # the bound is grace + 10 s: half a second here
    process = start()
    following(life, process)
    process.send_signal(signal.SIGTERM)
    code, _, err = finished(process)
    assert code == 143
    assert "still cancelling" in err


def test_a_signal_during_the_submit_loses_no_job(life, start, server):
    arrived, answer = threading.Event(), threading.Event()

    def slow(_):
        arrived.set()
        answer.wait(60)
        return Reply(201, {"job_id": JOB_ID, "status": "pending"})

    server.on("POST", "/jobs", slow)
    process = start()
    assert arrived.wait(60)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)  # let it arrive while the answer is awaited
    answer.set()
    assert finished(process)[0] == 130
    assert life.asked("cancel") == 1


@pytest.mark.parametrize("how", ["gone", "silent"])
def test_a_dead_server_does_not_block_the_exit(life, start, server, how):
    """R53"""
    process = start()
    following(life, process)
    if how == "gone":
        server.close()
    else:
        blocked = threading.Event()
        server.on("POST", ".*", lambda _: blocked.wait(100) or DROP)
        server.on("GET", ".*", lambda _: blocked.wait(100) or DROP)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    code, _, err = finished(process, 80)
    if how == "silent":
        blocked.set()
    assert code == 130
    assert time.monotonic() - began < 60
    assert f"runyard cancel {JOB_ID}" in err


def test_a_refused_cancel_is_told(life, start, server):
    process = start()
    following(life, process)
    refusal = problem(403, "forbidden", "Key 'ann' may not do this.")
    server.on("POST", f"/jobs/{JOB_ID}/cancel", refusal)
    process.send_signal(signal.SIGINT)
    code, _, err = finished(process)
    assert code == 130
    assert "Key 'ann' may not do this." in err


def test_hangup_leaves_the_job_running(life, start):
    process = start()
    following(life, process)
    process.send_signal(signal.SIGHUP)
    code, _, err = finished(process)
    assert code == 129
    assert f"runyard logs -f {JOB_ID}" in err
    assert life.asked("cancel") == life.asked("force-kill") == 0


def test_a_restarted_server_is_found_again(life, start, server):
    process = start()
    following(life, process)
    server.close()
    assert any(b"does not answer" in line for line in iter(process.stderr.readline, b""))
    again = ScriptedServer(server.port)
    try:
        back = Life(again)
        back.start()
        back.write(b"begun\nmore\n")
        back.end("failed", 3)
        code, out, err = finished(process)
    finally:
        again.close()
    assert (code, out) == (3, b"more\n")
    assert "connected again" in err


def test_a_closed_stdout_leaves_the_job_running(life, start):
    process = start()
    following(life, process)
    process.stdout.close()
    life.write(b"more\n" * 10)
    process.wait(60)
    assert process.returncode == 141
    assert f"runyard logs -f {JOB_ID}" in process.stderr.read().decode()
    assert life.asked("cancel") == 0


def test_a_lease_is_renewed_while_the_client_lives(life, start):
    process = start("run", "--lease", "0.6s", "--", "true")
    following(life, process)
    until(lambda: life.asked("lease") >= 3, words="the lease is not renewed")
    life.end()
    assert finished(process)[0] == 0


@pytest.mark.parametrize("words", [("logs", "-f", JOB_ID), ("wait", JOB_ID)])
def test_following_and_waiting_never_cancel(life, start, words):
    life.start()
    life.write(b"begun\n")
    process = start(*words)
    if words[0] == "logs":
        assert process.stdout.readline() == b"begun\n"
    else:
        until(lambda: life.server.requests("GET", f"/jobs/{JOB_ID}/wait"), words="no wait")
    process.send_signal(signal.SIGINT)
    code, _, err = finished(process)
    assert code == 130
    assert "Traceback" not in err
    assert life.asked("cancel") == 0


def test_run_detached_only_submits(life, start):
    code, out, err = finished(start("run", "-d", "--", "sleep", "60"))
    assert (code, out, err) == (0, f"{JOB_ID}\n".encode(), "")
    assert len(life.server.asked) == 1


def test_a_status_line_on_a_terminal(life, start):
    ours, theirs = pty.openpty()
    try:
        process = start("run", "--", "true", stderr=theirs)
        os.close(theirs)
        seen = b""
        while b"2 of at most 2 jobs run" not in seen:
            seen += os.read(ours, 4096)
        assert b"\r\x1b[K" in seen
        life.start()
        life.end()
        assert process.wait(60) == 0
        while chunk := _read(ours):
            seen += chunk
        assert b"completed" in seen
    finally:
        os.close(ours)


def _read(descriptor):
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other side of the terminal is closed
        return b""


def test_a_silent_submit_does_not_block_the_exit(start, server):
    """R53: whether there is a job is not known then, and that is said."""
    arrived, answer = threading.Event(), threading.Event()
    server.on("POST", "/jobs", lambda _: (arrived.set(), answer.wait(60)) and DROP)
    process = start()
    assert arrived.wait(60)
    process.send_signal(signal.SIGINT)
    code, _, err = finished(process)
    answer.set()
    assert code == 130
    assert "'runyard ls' tells whether it took the job" in err


def test_a_second_signal_does_not_wait_for_a_silent_submit(start, server):
    """R53"""
    arrived, answer = threading.Event(), threading.Event()
    server.on("POST", "/jobs", lambda _: (arrived.set(), answer.wait(60)) and DROP)
    process = start()
    assert arrived.wait(60)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)  # two that come at once may be one
    process.send_signal(signal.SIGTERM)
    assert finished(process)[0] == 143
    answer.set()


def test_a_lease_makes_the_job_end_with_a_hangup(life, start):
    process = start("run", "--lease", "60s", "--", "true")
    following(life, process)
    process.send_signal(signal.SIGHUP)
    assert finished(process)[0] == 129
    assert life.asked("cancel") == 1


def test_a_lease_that_cannot_be_renewed_is_told_once(life, start, server):
    server.on("POST", f"/jobs/{JOB_ID}/lease", problem(503, "unavailable", "no"))
    process = start("run", "--lease", "0.3s", "--", "true")
    following(life, process)
    until(lambda: life.asked("lease") >= 6, words="given up")
    life.end()
    code, _, err = finished(process)
    assert code == 0
    assert err.count("could not be renewed") == 1


SERVICE = f"""'{sys.executable}' -c 'import os, socket, time; s = socket.socket()
s.bind(("127.0.0.1", {{port}})); s.listen(); time.sleep(300)'"""


def test_a_local_service_is_started_before_and_stopped_after(life, start, server):
    """R50"""
    process = start("run", "--local-service", f"reward={SERVICE}", "--", "true")
    following(life, process)
    [request] = server.requests("POST", "/jobs")
    [service] = request.body["services"]
    assert service["name"] == "reward"
    assert request.body["lease_s"] == 60
    life.end()
    code, _, err = finished(process)
    assert code == 0
    words = ["reward starts; its log: ", f"ready at {service['url']}", "submitted", "stopped in"]
    assert [err.index(word) for word in words] == sorted(err.index(word) for word in words)


def test_local_services_of_a_job_file(life, start, server, tmp_path):
    (tmp_path / "job.yaml").write_text(
        f"""
command: "true"
local_services:
  - name: reward
    command: [{sys.executable}, -m, http.server, --bind, 127.0.0.1, "{{port}}"]
    health: /
    port: {POOL[0]}-{POOL[-1]}
    ready_timeout_s: 60s
    restart: on-failure
    cwd: {tmp_path}
    env: {{LEVEL: 3}}
    log: {tmp_path}/reward.log
"""
    )
    process = start("run", "-f", "job.yaml")
    following(life, process)
    [request] = server.requests("POST", "/jobs")
    assert "local_services" not in request.body
    port = int(request.body["services"][0]["url"].rpartition(":")[2])
    assert port in POOL
    assert "GET / HTTP" in (tmp_path / "reward.log").read_text()
    life.end()
    assert finished(process)[0] == 0


@pytest.mark.parametrize(
    "entry",
    [
        "{name: a}",
        "{name: a, comand: b}",
        "[a]",
        "[{name: a, command: 3}]",
        "[{name: a, command: b, prot: 3}]",
        "[{name: a, command: b, port: high}]",
        "[{name: a, command: b, env: [x]}]",
        "[{name: a, command: b, health: 7}]",
        "[{name: a b, command: b}]",
        "[{name: a, command: b, ready_timeout_s: soon}]",
    ],
)
def test_local_services_that_make_no_sense(start, server, tmp_path, entry):
    (tmp_path / "job.yaml").write_text(f"command: x\nlocal_services: {entry}\n")
    code, _, err = finished(start("run", "-f", "job.yaml"))
    assert code in (2, 5)
    assert "ocal" in err
    assert "Traceback" not in err
    assert server.asked == []


@pytest.mark.parametrize("words", [("run", "-d"), ("submit",)])
def test_local_services_need_a_client_that_stays(start, server, tmp_path, words):
    (tmp_path / "job.json").write_text('{"command": "x", "local_services": [{"name": "a"}]}')
    code, _, err = finished(start(*words, "-f", "job.json"))
    assert code == 2
    assert "end with this client" in err
    assert server.asked == []


@pytest.mark.parametrize("words", [("run", "-d", "--lease", "60s", "--", "true"), ("submit",)])
def test_a_lease_needs_a_client_that_stays(start, server, tmp_path, words):
    """R50: nobody would renew it, so the job would be cancelled unasked."""
    (tmp_path / "job.json").write_text('{"command": "x", "lease_s": 60}')
    given = words if "--" in words else (*words, "-f", "job.json")
    code, _, err = finished(start(*given))
    assert code == 2
    assert "POST /jobs/{id}/lease" in err
    assert server.asked == []


def test_a_service_that_does_not_start_is_told_with_its_log(start, server):
    code, _, err = finished(start("run", "--local-service", "reward=exit 3", "--", "true"))
    assert code == 1
    assert "reward ended with exit code 3; its log is " in err
    assert server.asked == []


def test_a_flag_without_a_command(start):
    code, _, err = finished(start("run", "--local-service", "reward", "--", "true"))
    assert code == 2
    assert "NAME=COMMAND" in err
