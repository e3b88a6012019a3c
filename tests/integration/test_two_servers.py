"""Two servers share one PostgreSQL: jobs run once, ports are held once, nothing is lost."""

import signal
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from runyard import Client
from runyard.supervisor import journal
from yards import POOL, SMALL, Truth, until

LIMIT = 6
FIRST_PORT, LAST_PORT = POOL[-5], POOL[-1]
# Each line is appended by one write, so the file's order is the order in which things happened.
MARKS = (
    "echo start $RUNYARD_JOB_ID ${{RUNYARD_PORT_0:--}} >>{marks}; "
    "echo end $RUNYARD_JOB_ID ${{RUNYARD_PORT_0:--}} >>{marks}"
)


@pytest.fixture
def pair(postgres_url, make_yard):
    """Two servers of one machine, started at the same time on one empty database."""
    flags = ["--database-url", postgres_url, "--port-range", f"{FIRST_PORT}-{LAST_PORT}"]
    yards = [
        make_yard(*flags, max_concurrent=LIMIT, env={"RUNYARD_NODE_NAME": name})
        for name in ("one", "two")
    ]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda yard: yard.start(), yards))


def submit_slowly(yard, jobs):
    """Some one by one, the rest in batches: both ways in."""
    single, rest = jobs[:20], jobs[20:]
    for job in single:
        assert yard.api("POST", "/jobs", job).status == 201
    for start in range(0, len(rest), 46):
        answer = yard.api("POST", "/jobs/batch", {"jobs": rest[start : start + 46]})
        assert answer.status == 201, answer.data


def test_500_short_jobs_run_exactly_once(pair, tmp_path):
    """R11, R33, R55; exactly once, none lost, no port twice at once, max_concurrent for both."""
    go = tmp_path / "go"
    # A slot that becomes free is filled by the server that hears of it first: give both some.
    hold = ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done"]
    for _ in range(LIMIT // 2):
        submit_to(pair[0], pair[1], hold)
        submit_to(pair[1], pair[0], hold)
    marks = tmp_path / "marks"
    command = ["sh", "-c", MARKS.format(marks=marks)]
    plain = {**SMALL, "command": command}
    wants_port = {**plain, "ports": 1}
    halves = [[plain, wants_port] * 125, [wants_port, plain] * 125]
    threads = [
        threading.Thread(target=submit_slowly, args=both)
        for both in zip(pair, halves, strict=True)
    ]
    for thread in threads:
        thread.start()
    go.touch()
    for thread in threads:
        thread.join()

    def done():
        completed = pair[0].api("GET", "/jobs?status=completed&limit=1")
        return int(completed.headers["X-Total-Count"]) - LIMIT

    until(lambda: done() == 500, 90, lambda: (done(), pair[1].ask("/queue/status")), every=0.2)
    lines = [line.split() for line in marks.read_text().splitlines()]
    starts = Counter(ref for word, ref, _ in lines if word == "start")
    assert len(starts) == 500
    assert set(starts.values()) == {1}
    assert_never_shared(lines)
    attempts = [job["attempt"] for job in all_jobs(pair[1]) if job["job_id"] in starts]
    assert len(attempts) == 500
    assert {attempt["number"] for attempt in attempts} == {1}
    assert {attempt["exit_code"] for attempt in attempts} == {0}
    ran_by = Counter(attempt["node"] for attempt in attempts)
    assert len(ran_by) == 2, f"one server did all the work: {ran_by}"


def assert_never_shared(lines):
    """What the jobs themselves saw: never more than the limit, never one port for two."""
    running, ports = set(), {}
    for word, ref, port in lines:
        if word == "start":
            running.add(ref)
            if port != "-":
                assert FIRST_PORT <= int(port) <= LAST_PORT
                assert port not in ports, f"{ref} and {ports[port]} both hold {port}"
                ports[port] = ref
        else:
            running.remove(ref)
            ports.pop(port, None)
        assert len(running) <= LIMIT
    assert not running
    assert sum(port != "-" for _, _, port in lines) == 500


def all_jobs(yard):
    jobs, cursor = [], ""
    while True:
        answer = yard.api("GET", f"/jobs?limit=500{cursor}")
        jobs += answer.body
        if "X-Next-Cursor" not in answer.headers:
            return jobs
        cursor = f"&cursor={answer.headers['X-Next-Cursor']}"


def submit_to(chosen, other, command, **fields):
    """A job that this server owns: the other is drained while it is placed."""
    assert chosen.api("POST", f"/nodes/{node_id(other)}/drain").ok
    ref = other.submit(command, **fields)
    other.wait(ref, "running")
    assert chosen.api("POST", f"/nodes/{node_id(other)}/undrain").ok
    assert other.attempts(ref)[0]["node"] == node_id(chosen)
    return ref


def node_id(yard):
    return (yard.data / "server.id").read_text().strip()


def test_through_the_server_that_does_not_own_the_job(pair, tmp_path):
    """Cancel and logs work whichever server is asked."""
    one, two = pair
    truth = Truth(tmp_path / "truth")
    ref = submit_to(
        one,
        two,
        ["sh", "-c", f"exec 9>{truth.path}; echo up >&9; echo hello; echo world; exec sleep 600"],
        grace_s=1,
    )
    until(lambda: truth.held() and truth.data)
    until(lambda: two.logs(ref) == ["hello", "world"], words=lambda: two.logs(ref))
    raw = two.api("GET", f"/jobs/{ref}/logs?raw=true")
    assert (raw.status, raw.data) == (200, b"hello\nworld\n")
    followed = two.cli("logs", ref)
    assert followed.stdout == "hello\nworld\n", followed.stderr
    answer = two.cancel(ref)
    assert (answer.status, answer.body["status"]) == (200, "cancelled")
    assert not truth.held()
    assert one.status(ref) == "cancelled"
    assert answer.body["receipt"]["proof"] == "echild"
    truth.close()


TRAINING = """
import time
for n in range(1, 21):
    print(f"Epoch {n}/20 - Loss: {1 / n:.4f} é", flush=True)
    time.sleep(0.1)
time.sleep(600)
"""


def test_a_browser_of_the_server_that_does_not_own_the_job(pair):
    """R33, R37: one login for both, whichever runs the job."""
    other, owner = pair
    job = submit_to(owner, other, ["sh", "-c", "echo told; exec sleep 600"])
    until(lambda: owner.ask(f"/jobs/{job}/logs")["logs"])
    entered = other.api("POST", "/session", {"key": other.key})
    secret = entered.headers["Set-Cookie"].partition(";")[0].partition("=")[2]

    def seen_by(yard):
        cookie = {"Cookie": f"runyard_session_{yard.port}={secret}", "Authorization": ""}
        return yard.api("GET", f"/jobs/{job}/logs", headers=cookie)

    assert seen_by(other).body["logs"] == seen_by(owner).body["logs"] == ["told"]


def test_the_live_socket_of_the_server_that_does_not_own_the_job(pair):
    """R17: states, log and metrics come whichever server is asked."""
    one, two = pair
    ref = submit_to(one, two, [sys.executable, "-c", TRAINING])
    text, losses, statuses = [], set(), []

    def follow(watch):
        for message in watch:
            for event in message.get("events", ()):
                if event["type"] == "text":
                    text.append(event["text"])
                elif event["type"] == "points":
                    losses.update(event["series"].get("loss", {}).get("values", ()))
                elif event["type"] == "job":
                    statuses.append(event["status"])

    topics = ("jobs", f"log:{ref}:0", f"metrics:{ref}:@1")
    with Client(two.url, two.key).watch(*topics) as watch:
        thread = threading.Thread(target=follow, args=(watch,), daemon=True)
        thread.start()
        until(lambda: "".join(text).count("\n") == 20, 60, lambda: "".join(text))
        until(lambda: len(losses) == 20, 60, lambda: losses)
        assert two.cancel(ref).ok
        until(lambda: "cancelled" in statuses, 30, lambda: statuses)
    thread.join(10)
    whole = "".join(f"Epoch {n}/20 - Loss: {1 / n:.4f} é\n" for n in range(1, 21))
    assert "".join(text) == whole
    assert losses == {round(1 / n, 4) for n in range(1, 21)}


def test_one_server_is_killed(pair, tmp_path):
    """R42, R56: the other goes on with the queue and keeps cancels for it; restarted, it adopts
    what is its own."""
    one, two = pair
    truth = Truth(tmp_path / "truth")
    forever = ["sh", "-c", f"exec 9>{truth.path}; echo up >&9; exec sleep 600"]
    go = tmp_path / "go"
    kept = submit_to(one, two, forever, grace_s=1)
    cancelled = submit_to(one, two, forever, grace_s=1)
    until(lambda: truth.held() and truth.data.count(b"up") == 2)
    ends = submit_to(one, two, ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; exit 5"])
    one.kill9()
    refs = [two.submit(["true"]) for _ in range(20)]
    for ref in refs:
        two.wait(ref, "completed")
    assert two.cancel(cancelled, wait=0).body["status"] == "cancelling"
    go.touch()
    assert two.status(kept) == "running"
    assert two.status(cancelled) == "cancelling"
    assert truth.held()
    one.start()
    two.wait(cancelled, "cancelled")
    assert two.wait(ends, "failed")["attempt"]["exit_code"] == 5
    [attempt] = two.attempts(kept)
    assert attempt["status"] == "running"
    assert two.cancel(kept).body["status"] == "cancelled"
    assert not truth.held()
    truth.close()


def test_both_servers_stop_and_start_the_queue_as_one(pair):
    """R22: paused through one, nothing starts on either; told to go on through the other."""
    one, two = pair
    assert one.api("POST", "/system/stop-queue").ok
    refs = [yard.submit(["true"]) for yard in pair for _ in range(3)]
    until(lambda: two.ask("/queue/status")["dispatching"] is False)
    until(lambda: {two.job(ref)["reason"]["code"] for ref in refs} == {"dispatch_paused"})
    assert two.api("POST", "/system/start-queue").ok
    for ref in refs:
        one.wait(ref, "completed")


def test_the_database_goes_away_and_comes_back(own_postgres_server, make_yard, tmp_path):
    """Clear answers meanwhile; what ended then is recorded truly when it is back."""
    url = f"{own_postgres_server.url}/postgres"
    yard = make_yard("--database-url", url).start()
    go = tmp_path / "go"
    ends = yard.submit(["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; exit 9"])
    stays = yard.submit(["sleep", "600"], grace_s=1)
    for ref in (ends, stays):
        yard.wait(ref, "running")
    port = own_postgres_server.port
    own_postgres_server.stop(signal.SIGQUIT)
    answer = yard.api("POST", "/jobs", {**SMALL, "command": ["true"]}, timeout=60)
    assert (answer.status, answer.body["code"]) == (503, "unavailable"), answer.data
    go.touch()
    folder = yard.data / "attempts" / f"{ends}.1"
    until(lambda: journal.read(str(folder)).exit)
    own_postgres_server.start(port)
    until(lambda: yard.api("GET", f"/jobs/{ends}").ok)
    assert yard.wait(ends, "failed")["attempt"]["exit_code"] == 9
    assert yard.status(stays) == "running"
    yard.wait(yard.submit(["true"]), "completed")
    assert yard.cancel(stays).body["status"] == "cancelled"


def test_stopped_while_the_database_is_away(own_postgres_server, make_yard, tmp_path):
    """It ends, says why it could not end its jobs, and leaves them to the next start."""
    yard = make_yard("--database-url", f"{own_postgres_server.url}/postgres").start()
    truth = Truth(tmp_path / "truth")
    ref = yard.submit(["sh", "-c", f"exec 9>{truth.path}; echo up >&9; exec sleep 600"], grace_s=1)
    until(lambda: truth.held() and truth.data)
    yard.wait(ref, "running")
    port = own_postgres_server.port
    own_postgres_server.stop(signal.SIGQUIT)
    assert yard.terminate(60) == 1
    assert yard.said().strip().endswith("[unavailable]"), yard.said()
    assert "Traceback" not in yard.said()
    assert truth.held()
    own_postgres_server.start(port)
    yard.start()
    assert yard.wait(ref, "running")["attempt"]["number"] == 1
    assert yard.cancel(ref).body["status"] == "cancelled"
    assert not truth.held()
    truth.close()
