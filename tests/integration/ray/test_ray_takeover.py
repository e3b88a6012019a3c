"""Two real servers on one PostgreSQL and one real Ray: one is killed, and jobs go on."""

import pytest

from yards import until

# Two servers, PostgreSQL and Ray; tested in every run with a cluster of files instead of Ray.
pytestmark = pytest.mark.slow

LEASE_S = 5
# Counts up to the number in a file, a line and a metric for each; a test lets it go on by that.
COUNTING = """
import json, os, pathlib, sys, time
go, step = pathlib.Path(sys.argv[1]), 0
while step < 500:
    wanted = int(go.read_text() or 0)
    while step < wanted:
        step += 1
        print(f"step {step} of rank {os.environ.get('RANK', '0')}", flush=True)
        with open(os.environ["RUNYARD_METRICS_FILE"], "a") as file:
            file.write(json.dumps({"step": step, "loss": 1.0 / step}) + "\\n")
    time.sleep(0.05)
"""


@pytest.fixture
def server(postgres_url, make_ray_yard):
    def make(name):
        env = {
            "RUNYARD_NODE_NAME": name,
            "RUNYARD_SERVER_LEASE_S": str(LEASE_S),
            "RUNYARD_RECONCILE_INTERVAL": "1",
        }
        return make_ray_yard("--database-url", postgres_url, env=env, max_concurrent=8).start()

    return make


def node_id(yard):
    return (yard.data / "server.id").read_text().strip()


def owner(yard, ref):
    return yard.attempts(ref)[-1]["node"]


def losses(yard, ref):
    return yard.ask(f"/jobs/{ref}/metrics?keys=loss")["series"].get("loss", {}).get("steps", [])


def test_a_server_of_a_ray_cluster_is_killed_and_its_gang_goes_on(server, tmp_path):
    """R50, R55; high availability: the ranks are not touched, log and metrics go on at the other
    server without a gap, the end is recorded once, GPUs are back and the next gang starts."""
    go = tmp_path / "go"
    go.write_text("3")
    one = server("one")
    fields = {
        "executor": "ray",
        "gpu_count": 4,
        "cpu_cores": 1,
        "distributed": {"nodes": 2, "placement": "spread"},
    }
    ref = one.submit(["python3", "-c", COUNTING, str(go)], **fields)
    one.wait(ref, "running", seconds=60)
    before = one.attempts(ref)[-1]
    assert len({part["node"] for part in before["slices"]}) == 2
    two = server("two")
    waiting = two.submit(["true"], **fields)
    until(lambda: "step 3 of rank 0" in one.logs(ref), 30, lambda: one.logs(ref))
    one.kill9()
    until(lambda: owner(two, ref) == node_id(two), 90, lambda: two.said()[-3000:])
    go.write_text("8")
    steps = [f"step {step} of rank 0" for step in range(1, 9)]
    until(lambda: two.logs(ref) == steps, 60, lambda: two.logs(ref))
    others = [f"step {step} of rank 1" for step in range(1, 9)]
    until(lambda: two.logs(ref, rank=1) == others, 60, lambda: two.logs(ref, rank=1))
    until(lambda: 8 in losses(two, ref), 60, lambda: losses(two, ref))
    assert two.status(ref) == "running"
    assert two.status(waiting) == "pending"
    go.write_text("500")
    two.wait(ref, "completed", seconds=60)
    [attempt] = two.attempts(ref)
    assert (attempt["number"], attempt["exit_code"]) == (1, 0)
    codes = [event["code"] for event in two.ask(f"/jobs/{ref}/events")]
    assert codes.count("job_taken_over") == codes.count("job_completed") == 1
    two.wait(waiting, "completed", seconds=60)


def test_a_cancel_after_the_death_of_a_server_ends_the_ranks(server, tmp_path):
    """Asked of the server that is left, before it owns the job: it is passed on once it does."""
    go = tmp_path / "go"
    go.write_text("1")
    one = server("one")
    world = {"nodes": 2, "placement": "spread"}
    ref = one.submit(
        ["python3", "-c", COUNTING, str(go)], executor="ray", gpu_count=1, distributed=world
    )
    one.wait(ref, "running", seconds=60)
    two = server("two")
    one.kill9()
    answer = two.cancel(ref, wait=0)
    assert answer.body["status"] == "cancelling"
    job = two.wait(ref, "cancelled", seconds=120)
    assert job["status"] == "cancelled"
    assert not any(gpu["jobs"] for gpu in two.ask("/gpus"))
