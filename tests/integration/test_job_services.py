"""Services of jobs on a whole server: ports of the pool, health, logs, receipts, failures that
explain themselves, nothing left behind (R50)."""

import os
import re
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from yards import POOL, Truth, free_port, port_is_free, until

REPOSITORY = Path(__file__).resolve().parents[2]
GUIDE = REPOSITORY / "docs" / "guides" / "services.md"

# An HTTP service that answers 503 until the file named by its argument is there.
SERVER = """
import http.server, os, sys
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ready = len(sys.argv) < 2 or os.path.exists(sys.argv[1])
        self.send_response(200 if ready else 503)
        self.end_headers()
        self.wfile.write(os.environ["RUNYARD_SERVICE"].encode())
    def log_message(self, *words):
        print("request", self.path, flush=True)
print("listening on", os.environ["RUNYARD_PORT"], flush=True)
address = ("127.0.0.1", int(os.environ["RUNYARD_PORT"]))
http.server.ThreadingHTTPServer(address, Answers).serve_forever()
"""

CLIENT = """
import os, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(opener.open(os.environ["RUNYARD_SERVICE_MY_REWARD_URL"]).read().decode(), flush=True)
time.sleep(float(os.environ.get("WORK_S", "0")))
"""


def python(code, *arguments, alive=None):
    """A command that runs the code; with `alive` it holds that FIFO open."""
    words = [sys.executable, "-c", code, *map(str, arguments)]
    if alive is None:
        return words
    return ["/bin/sh", "-c", 'exec 9>"$0"; exec "$@"', str(alive), *words]


def reward(*arguments, alive=None, **fields):
    command = python(SERVER, *arguments, alive=alive)
    return {"name": "my-reward", "command": command, "health": "/health", **fields}


@pytest.fixture
def truth(tmp_path):
    made = Truth(tmp_path / "alive")
    yield made
    made.close()


def services_of(yard, ref):
    return (yard.job(ref)["attempt"] or {}).get("services") or []


def await_ready(yard, ref):
    return until(
        lambda: [one for one in services_of(yard, ref) if one["state"] == "ready"],
        words=lambda: yard.job(ref),
    )


def test_a_service_beside_a_job(yard, truth):
    """R50: a port of the pool, ready before the job, its log, its receipt; all of it back."""
    ref = yard.submit(python(CLIENT, alive=truth.path), services=[reward(alive=truth.path)])
    job = yard.wait(ref, "completed")
    assert yard.logs(ref) == ["my-reward"]
    [port] = job["attempt"]["ports"]
    assert port in POOL
    assert job["ports"] == 0  # the person asked for none
    [told] = job["attempt"]["services"]
    assert (told["state"], told["port"], told["restarts"]) == ("ended", port, 0)
    assert told["url"] == f"http://127.0.0.1:{port}"
    log = yard.logs(ref, service="my-reward")
    assert log[0] == f"listening on {port}"
    assert "request /health" in log
    receipt = yard.ask(f"/jobs/{ref}/receipt")
    assert [one["name"] for one in receipt["services"]] == ["my-reward"]
    assert receipt["ports"] == [port]
    assert not truth.held()
    assert port_is_free(port)
    codes = [event["code"] for event in yard.ask(f"/jobs/{ref}/events")]
    assert codes.index("service_ready") < codes.index("job_started")


def test_the_port_goes_to_the_next_job(make_yard):
    yard = make_yard("--port-range", f"{POOL[0]}-{POOL[1]}", max_concurrent=1).start()
    for _ in range(3):
        ref = yard.submit(python(CLIENT), services=[reward()], ports=1)
        job = yard.wait(ref, "completed")
        assert sorted(job["attempt"]["ports"]) == [POOL[0], POOL[1]]
        assert job["ports"] == 1


def test_scheduled_until_its_services_are_ready(yard, truth, tmp_path):
    warm = tmp_path / "warm"
    service = reward(warm, alive=truth.path, ready_timeout_s=600)
    ref = yard.submit(python(CLIENT, alive=truth.path), services=[service])
    until(lambda: "request /health" in yard.logs(ref, service="my-reward"))
    job = yard.job(ref)
    assert (job["status"], job["stage"]) == ("scheduled", "starting")
    assert job["reason"] == {"code": "starting_services", "params": {"services": ["my-reward"]}}
    assert [one["state"] for one in job["attempt"]["services"]] == ["starting"]
    warm.touch()
    yard.wait(ref, "completed")


def test_cancel_while_services_get_ready(yard, truth, tmp_path):
    service = reward(tmp_path / "never", alive=truth.path, ready_timeout_s=600)
    ref = yard.submit(python(CLIENT, alive=truth.path), services=[service])
    until(lambda: "request /health" in yard.logs(ref, service="my-reward"))
    answer = yard.cancel(ref)
    assert answer.body["status"] == "cancelled"
    assert not truth.held()
    assert yard.job(ref)["started_at"] is None


def test_cancel_says_that_it_waits_for_services_and_with_their_grace(make_yard):
    """Main never ran: there is no step to wait for, nor the grace of one."""
    yard = make_yard(env={"RUNYARD_LEFTOVER_GRACE_S": "25"}).start()
    command = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    stubborn = {"name": "db", "command": command, "ready_timeout_s": 600}
    ref = yard.submit("true", services=[stubborn], grace_s=300)
    until(lambda: yard.logs(ref, service="db") == ["up"])
    yard.cancel(ref, wait=0)
    reason = yard.job(ref)["reason"]
    assert (reason["code"], reason["params"]["services"]) == ("waiting_for_services", ["db"])
    assert 0 < reason["params"]["left_s"] <= 25
    yard.api("POST", f"/jobs/{ref}/force-kill?wait=20", timeout=40)
    assert yard.wait(ref, "cancelled")["reason"]["code"] == "user_cancelled"


def test_a_failed_service_is_told_while_the_job_has_its_grace(yard, tmp_path):
    """R27: still running, finishing, stopping because of the service."""
    go, done = tmp_path / "go", tmp_path / "done"
    helper = f"""
import os, socket, time
server = socket.create_server(("127.0.0.1", int(os.environ["RUNYARD_PORT"])))
while not os.path.exists({str(go)!r}): time.sleep(0.01)
raise SystemExit(3)
"""
    main = f"trap '' TERM; echo up; while [ ! -e {done} ]; do sleep 0.05; done"
    service = {"name": "db", "command": python(helper)}
    ref = yard.submit(main, services=[service], grace_s=300)
    yard.wait(ref, "running")
    assert yard.job(ref)["reason"] is None
    until(lambda: yard.logs(ref) == ["up"])  # it no longer hears the request to end
    go.touch()
    job = until(lambda: (found := yard.job(ref))["stage"] == "finishing" and found)
    assert job["status"] == "running"
    assert job["reason"] == {"code": "stopping", "params": {"cause": "service_failed"}}
    done.touch()
    assert yard.wait(ref, "failed")["reason"]["code"] == "service_failed"


def test_cancel_ends_job_and_services(yard, truth):
    ref = yard.submit(
        python(CLIENT, alive=truth.path),
        services=[reward(alive=truth.path)],
        env_vars={"WORK_S": "600"},
    )
    [service] = await_ready(yard, ref)
    yard.wait(ref, "running")
    answer = yard.cancel(ref)
    assert answer.body["status"] == "cancelled"
    assert not truth.held()
    assert port_is_free(service["port"])
    [told] = answer.body["receipt"]["services"]
    assert told["pid"] == service["pid"]


def test_server_killed_and_started_again_finds_job_and_services(make_yard, truth):
    yard = make_yard().start()
    ref = yard.submit(
        python(CLIENT, alive=truth.path),
        services=[reward(alive=truth.path)],
        env_vars={"WORK_S": "600"},
    )
    [before] = await_ready(yard, ref)
    yard.wait(ref, "running")
    yard.kill9()
    yard.start()
    [after] = services_of(yard, ref)
    assert (after["pid"], after["state"]) == (before["pid"], "ready")
    yard.cancel(ref)
    assert yard.status(ref) == "cancelled"
    assert not truth.held()


def test_a_service_that_fails_explains_itself(yard):
    failing = {"name": "db", "command": "echo 'no such table: rewards' >&2; exit 3"}
    ref = yard.submit("true", services=[failing])
    job = yard.wait(ref, "failed")
    reason = job["reason"]
    assert reason["code"] == "service_failed"
    params = reason["params"]
    assert (params["service"], params["code"], params["exit_code"]) == ("db", "exited", 3)
    assert params["line"] == "no such table: rewards"
    assert (job["attempt"]["cause"], job["attempt"]["exit_code"]) == ("service_failed", None)
    told = yard.cli("explain", ref)
    assert "its service db ended with exit code 3" in told.stdout
    assert "no such table: rewards" in told.stdout
    assert "Last lines of the log of service db:" in told.stdout
    assert yard.cli("logs", ref, "--service", "db").stdout == "no such table: rewards\n"


def test_a_service_that_does_not_get_ready(yard):
    mute = {"name": "db", "command": "sleep 600", "ready_timeout_s": 0.3}
    ref = yard.submit("true", services=[mute])
    params = yard.wait(ref, "failed")["reason"]["params"]
    assert (params["code"], params["ready_timeout_s"]) == ("not_ready", 0.3)
    assert yard.logs(ref) == []


def test_a_failed_service_is_charged_and_retried(yard):
    ref = yard.submit("true", services=[{"name": "db", "command": "exit 1"}], max_retries=1)
    job = yard.wait(ref, "failed")
    assert (job["retry_count"], job["charged"]) == (1, 1)
    assert job["reason"]["code"] == "retries_used_up"
    assert job["reason"]["params"]["last"]["code"] == "service_failed"


def test_a_service_that_dies_fails_the_running_job(yard, truth):
    ref = yard.submit(
        python(CLIENT, alive=truth.path),
        services=[reward(alive=truth.path)],
        env_vars={"WORK_S": "600"},
        grace_s=1,
    )
    [service] = await_ready(yard, ref)
    until(lambda: yard.logs(ref) == ["my-reward"])
    os.kill(service["pid"], 9)
    reason = yard.wait(ref, "failed")["reason"]
    assert (reason["code"], reason["params"]["signal"]) == ("service_failed", 9)
    assert not truth.held()


def test_a_service_is_restarted_and_the_job_goes_on(yard, truth):
    ref = yard.submit(
        python(CLIENT, alive=truth.path),
        services=[reward(alive=truth.path, restart="on-failure")],
        env_vars={"WORK_S": "600"},
    )
    [service] = await_ready(yard, ref)
    until(lambda: yard.logs(ref) == ["my-reward"])
    os.kill(service["pid"], 9)
    until(lambda: [s for s in await_ready(yard, ref) if s["restarts"] == 1])
    assert yard.status(ref) == "running"
    shown = yard.cli("show", ref).stdout
    assert re.search(r"services +my-reward ready http://\S+ restarted 1 times", shown), shown
    events = f"/jobs/{ref}/events"
    until(lambda: [event["code"] for event in yard.ask(events)].count("service_ready") == 2)
    yard.cancel(ref)
    assert not truth.held()


def test_a_fixed_port(yard):
    port = free_port()
    ref = yard.submit(python(CLIENT), services=[reward(port=port)])
    job = yard.wait(ref, "completed")
    assert job["attempt"]["ports"] == []
    assert job["attempt"]["services"][0]["port"] == port


def test_a_fixed_port_that_somebody_has(yard):
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        ref = yard.submit("true", services=[reward(port=stranger.getsockname()[1])])
        params = yard.wait(ref, "failed")["reason"]["params"]
    assert params["code"] == "port_in_use"


def test_a_fixed_port_of_the_pool_is_refused(yard):
    body = {"command": "true", "services": [reward(port=POOL[1])]}
    answer = yard.api("POST", "/jobs", body)
    assert answer.status == 422
    [field] = answer.body["params"]["fields"]
    assert (field["field"], field["code"]) == ("services[0].port", "port_of_the_pool")


def test_template_and_environment_of_a_service(yard):
    command = "echo {port} {depth} $RUNYARD_PORT $RUNYARD_PORT_DB $OWN $SHARED ${depth}; exit 1"
    service = {"name": "db", "command": command, "env_vars": {"OWN": "mine"}}
    ref = yard.submit(
        "true", services=[service], params={"depth": 3}, env_vars={"SHARED": "all", "depth": "x"}
    )
    job = yard.wait(ref, "failed")
    [port] = job["attempt"]["ports"]
    assert yard.logs(ref, service="db") == [f"{port} 3 {port} {port} mine all x"]


def test_logs_of_a_service_in_every_form(yard, truth):
    ref = yard.submit(
        python(CLIENT, alive=truth.path),
        services=[reward(alive=truth.path)],
        env_vars={"WORK_S": "600"},
    )
    [service] = await_ready(yard, ref)
    assert yard.attempts(ref)[0]["services"] == [service]
    first = f"listening on {service['port']}"
    assert yard.logs(ref, service="my-reward", grep="listening") == [first]
    raw = yard.api("GET", f"/jobs/{ref}/logs?service=my-reward&raw=true")
    assert raw.data.splitlines()[0].decode() == first
    assert yard.api("GET", f"/jobs/{ref}/logs?service=other").status == 404
    assert yard.api("GET", f"/jobs/{ref}/logs?service=..%2Fout&follow=true").status == 404
    request = urllib.request.Request(
        f"{yard.url}/api/v1/training/jobs/{ref}/logs?service=my-reward&follow=true",
        headers={"Authorization": f"Bearer {yard.key}"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as stream:
        until(lambda: stream.readline().decode().strip() == f"data: {first}")
    assert yard.cli("logs", ref, "--service", "my-reward", "-n", 1).returncode == 0
    yard.cancel(ref)
    told = yard.cli("logs", "-f", "--service", "my-reward", ref).stdout
    assert told.splitlines()[0] == first


def test_the_example_of_the_guide(yard, tmp_path):
    """The guide's files, run as it says."""
    for name, text in re.findall(r"```\w+\n# (\S+)\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        (tmp_path / name).write_text(text)
    assert {path.name for path in tmp_path.glob("*.*")} >= {"reward_server.py", "job.yaml"}
    small = ("--cpus", "0.01", "--mem", "10MB", "--gpus", "0", "--workdir", tmp_path)
    ran = yard.cli("run", *small, "-f", tmp_path / "job.yaml", timeout=120)
    assert ran.returncode == 0, ran.stderr
    rewards = re.findall(r"reward (\d\.\d\d)", ran.stdout)
    assert rewards == ["0.00", "0.50", "1.00"]
    ref = yard.ask("/jobs")[0]["job_id"]
    assert "GET /health" in yard.cli("logs", "--service", "reward", ref).stdout
    by_flag = ("--service", "reward=python3 reward_server.py", "--", "python3", "train.py")
    assert yard.cli("run", *small, *by_flag, timeout=120).returncode == 0
