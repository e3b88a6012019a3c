"""Two real servers on one PostgreSQL and one cluster: one dies, and jobs and their watch go on."""

import json
import signal
from pathlib import Path

import pytest

import file_cluster
from yards import until

PROGRAM = str(Path(file_cluster.__file__).with_name("file_cluster_server.py"))
LEASE_S = 3
# Of servers that watch each other: a pause of one is no reason for another to take its jobs.
LONGER_S = 8
ON_RAY = {"executor": "ray", "gpu_count": 1, "preflight": False}
# Reports a step whenever the test lets it, so that somebody has to watch it to see the last.
COUNTING = """
import json, os, pathlib, sys, time
go = pathlib.Path(sys.argv[1])
held = open(sys.argv[2] + os.environ.get("NODE_RANK", "0"), "w")
import fcntl
fcntl.flock(held, fcntl.LOCK_EX)
step = 0
while True:
    wanted = int(go.read_text() or 0) if go.exists() else 0
    while step < wanted:
        step += 1
        print(f"step {step} of rank {os.environ.get('RANK', '0')}", flush=True)
        with open(os.environ["RUNYARD_METRICS_FILE"], "a") as file:
            file.write(json.dumps({"step": step, "loss": 1.0 / step}) + "\\n")
    if step >= 1000:
        sys.exit(0)
    time.sleep(0.02)
"""


@pytest.fixture
def cluster(tmp_path):
    folder = file_cluster.make(tmp_path / "cluster", ["w1", "w2"])
    yield folder
    file_cluster.stop_all(folder)
    until(lambda: not unfinished(folder), words=lambda: unfinished(folder))


def unfinished(folder):
    found = []
    for spec in (folder / "attempts").glob("*/spec.json"):
        parts = len(json.loads(spec.read_text())["slices"])
        if len(list(spec.parent.glob("end-*.json"))) < parts:
            found.append(spec.parent.name)
    return found


@pytest.fixture
def server(cluster, postgres_url, make_yard):
    """Real servers, each as if on a machine of its own: only the cluster is common."""

    def make(name, lease_s=LEASE_S):
        flags = ["--database-url", postgres_url, "--executor", "ray"]
        told = {
            "RUNYARD_NODE_NAME": name,
            "RUNYARD_SERVER_LEASE_S": str(lease_s),
            "RUNYARD_RECONCILE_INTERVAL": "0.5",
            "FILE_CLUSTER": str(cluster),
        }
        yard = make_yard(*flags, env=told, max_concurrent=8)
        yard.program = [PROGRAM]
        return yard.start()

    return make


def node_id(yard):
    return (yard.data / "server.id").read_text().strip()


def gang(tmp_path, **more):
    go, held = tmp_path / "go", tmp_path / "held"
    command = ["python3", "-c", COUNTING, str(go), str(held)]
    world = {"nodes": 2, "placement": "spread"}
    return go, {**ON_RAY, "command": command, "distributed": world, **more}


def attempt_of(yard, ref):
    return yard.attempts(ref)[-1]


def test_a_server_is_killed_and_jobs_and_their_watch_go_on(server, cluster, tmp_path):
    """R55, R50 (issue: high availability): the gang is not restarted, its log and its metrics come
    from the other server, its end is recorded once, and the next job starts by itself."""
    one = server("one")
    go, body = gang(tmp_path, name="counts")
    go.write_text("3")
    ref = one.submit(**body)
    one.wait(ref, "running")
    before = attempt_of(one, ref)
    assert before["node"] == node_id(one)
    assert {part["name"] for part in before["slices"]} == {"w1", "w2"}
    two = server("two")
    waiting = two.submit(**{**body, "gpu_count": 2, "command": ["true"]})
    one.kill9()
    until(
        lambda: attempt_of(two, ref)["node"] == node_id(two),
        60,
        lambda: (attempt_of(two, ref), two.said()[-3000:]),
    )
    go.write_text("7")
    until(lambda: "step 7 of rank 0" in two.logs(ref), 60, lambda: two.logs(ref))
    assert two.logs(ref) == [f"step {step} of rank 0" for step in range(1, 8)]
    until(lambda: 7 in loss_steps(two, ref), 60, lambda: loss_steps(two, ref))
    assert two.status(ref) == "running"
    assert [one_["number"] for one_ in two.attempts(ref)] == [1]
    assert two.status(waiting) == "pending"
    one.env["RUNYARD_SERVER_LEASE_S"] = str(LONGER_S)
    one.start()  # it comes back, finds the attempt on its cluster, and leaves it to its new owner
    assert attempt_of(one, ref)["node"] == node_id(two)
    assert one.logs(ref) == two.logs(ref)
    go.write_text("1000")
    two.wait(ref, "completed", seconds=60)
    codes = [event["code"] for event in two.ask(f"/jobs/{ref}/events")]
    assert codes.count("job_taken_over") == codes.count("job_completed") == 1
    two.wait(waiting, "completed", seconds=60)
    assert unfinished(cluster) == []
    starts = [path.name for path in (cluster / "attempts").glob("*.fate")]
    assert sorted(starts) == sorted([f"{ref}.1.fate", f"{waiting}.1.fate"])


def loss_steps(yard, ref):
    return yard.ask(f"/jobs/{ref}/metrics?keys=loss")["series"].get("loss", {}).get("steps", [])


def test_a_frozen_server_is_fenced_when_it_thaws(server, tmp_path):
    """A server that only seemed dead: while it stood still another became the owner. It then ends
    nothing, starts nothing twice, and takes new work."""
    one = server("one", LONGER_S)
    go, body = gang(tmp_path)
    go.write_text("1")
    ref = one.submit(**body)
    one.wait(ref, "running")
    two = server("two", LONGER_S)
    one.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: attempt_of(two, ref)["node"] == node_id(two), 60)
        answer = two.cancel(ref)
        assert (answer.status, answer.body["status"]) == (200, "cancelled")
        following = two.submit(**body)
        two.wait(following, "running")
    finally:
        one.process.send_signal(signal.SIGCONT)
    said = "others have taken over from it"
    until(lambda: said in server_log(one), 60, lambda: server_log(one)[-2000:])
    assert one.status(ref) == "cancelled"
    assert [each["end"] for each in one.attempts(ref)] == ["cancelled"]
    assert attempt_of(one, following)["node"] == node_id(two)
    assert two.cancel(following).body["status"] == "cancelled"
    two.kill9()
    last = one.submit(**{**ON_RAY, "command": ["true"]})
    one.wait(last, "completed")
    assert attempt_of(one, last)["node"] == node_id(one)


def server_log(yard):
    return (yard.data / "logs" / "server.log").read_text()


def test_six_gangs_survive_the_death_of_their_server(server, cluster, tmp_path):
    """All are owned by exactly one of two others, none runs twice, all end as they should."""
    (cluster / "nodes.json").write_text(
        json.dumps([{"name": f"w{n}", "gpus": 4, "alive": True} for n in range(4)])
    )
    one = server("one", LONGER_S)
    go, body = gang(tmp_path)
    go.write_text("1")
    refs = [one.submit(**{**body, "command": per_job(body, tmp_path, n)}) for n in range(6)]
    for ref in refs:
        one.wait(ref, "running")
    others = [server(name, LONGER_S) for name in ("two", "three")]
    one.kill9()
    names = {node_id(yard) for yard in others}
    until(lambda: {attempt_of(others[0], ref)["node"] for ref in refs} <= names, 60)
    go.write_text("1000")
    for ref in refs:
        others[1].wait(ref, "completed", seconds=90)
        codes = [event["code"] for event in others[0].ask(f"/jobs/{ref}/events")]
        assert codes.count("job_taken_over") == codes.count("job_completed") == 1
    fates = list((cluster / "attempts").glob("*.fate"))
    assert len(fates) == 6
    gpus = others[0].ask("/gpus")
    assert not any(gpu["jobs"] for gpu in gpus)


def per_job(body, tmp_path, number):
    *rest, _ = body["command"]
    return [*rest, str(tmp_path / f"held-{number}-")]


def test_cluster_nodes_in_the_command_line(server):
    one = server("one")
    shown = until(lambda: (said := one.cli("nodes").stdout) and "w1" in said and said)
    assert "ray" in shown
    by_name = {node["name"]: node for node in one.ask("/nodes")}
    assert (by_name["w1"]["kind"], by_name["w1"]["alive"]) == ("ray", True)
    assert one.cli("drain", "w1").returncode == 0
    for _ in range(2):
        ref = one.submit(**{**ON_RAY, "command": ["sleep", "60"]})
        one.wait(ref, "running")
        assert attempt_of(one, ref)["slices"][0]["name"] == "w2"
    gpus = one.cli("gpus").stdout
    assert "in use" in gpus
    assert one.cli("gpus", "fence", "w1:0", "--reason", "fan").returncode == 0
    assert [g["fenced"] for g in one.ask("/gpus") if g["uuid"] == "w1-gpu-0"] == [True]
