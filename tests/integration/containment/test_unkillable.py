"""What cannot be killed is named, and its attempt does not end before it is dead (R41)."""

import contextlib
import os

import pytest
from keeper_yard import wait_for

from runyard.supervisor import cgroup, journal, process_table, reconcile
from yards import POOL, until

FREEZER = cgroup.writable_v1_freezer() if os.getuid() == 0 else None
pytestmark = pytest.mark.skipif(
    FREEZER is None, reason="a frozen v1 group stands in for a driver that hangs: needs root"
)


@pytest.fixture
def freezer():
    """SIGKILL does nothing to a process in a frozen group until it is thawed."""
    group = f"{FREEZER}/runyard-test-{os.urandom(6).hex()}"
    os.mkdir(group)

    def write(name, value):
        with open(f"{group}/{name}", "w") as file:
            file.write(value)
        if value == "FROZEN":  # until then it is FREEZING, and may still die
            wait_for(lambda: frozen(group), "the group to be frozen")

    yield write
    write("freezer.state", "THAWED")
    wait_for(lambda: removed(group), "the group to be empty")


def frozen(group):
    with open(f"{group}/freezer.state") as file:
        return file.read().strip() == "FROZEN"


def removed(group):
    with contextlib.suppress(OSError):
        os.rmdir(group)
    return not os.path.exists(group)


def freeze_main(yard, attempt_id, freezer):
    yard.wait_job(attempt_id)
    pid = yard.journal(attempt_id).job["pid"]
    freezer("cgroup.procs", str(pid))
    freezer("freezer.state", "FROZEN")
    return pid


def test_stuck_is_reported_and_keeps_the_attempt(yard, freezer):
    """It is named in the journal and in news, and the attempt goes on living."""
    attempt_id = yard.start(["/bin/sleep", "600"], kill_timeout_s=0.3)
    pid = freeze_main(yard, attempt_id, freezer)
    yard.stop(attempt_id, grace_s=0)
    stuck = yard.hear(attempt_id, "stuck")["processes"]
    assert [process["pid"] for process in stuck] == [pid]
    assert stuck[0]["comm"] == "sleep"
    assert yard.journal(attempt_id).exit is None
    assert yard.journal(attempt_id).stuck["processes"] == stuck
    assert reconcile.look(yard.folder(attempt_id)).state == reconcile.ALIVE
    freezer("freezer.state", "THAWED")
    end = yard.wait_end(attempt_id)
    assert (end["cause"], end["stuck"]) == ("cancelled", [])
    assert end["was_stuck"] == stuck


def test_stuck_inside_a_namespace(yard, freezer):
    """The process that does not die is named, not the init that waits for it."""
    attempt_id = yard.start(["/bin/sleep", "600"], kill_timeout_s=0.3, isolation="strict")
    yard.wait_job(attempt_id)
    [init] = process_table.children(yard.journal(attempt_id).job["pid"])
    [pid] = process_table.children(init)
    freezer("cgroup.procs", str(pid))
    freezer("freezer.state", "FROZEN")
    yard.stop(attempt_id, grace_s=0)
    stuck = yard.hear(attempt_id, "stuck")["processes"]
    assert [(process["pid"], process["comm"]) for process in stuck] == [(pid, "sleep")]
    assert yard.journal(attempt_id).exit is None
    freezer("freezer.state", "THAWED")
    assert yard.wait_end(attempt_id)["cause"] == "cancelled"


def test_stuck_after_the_supervisors_death(yard, freezer):
    """The keeper does not close an attempt either while something of it lives."""
    attempt_id = yard.start(["/bin/sleep", "600"], kill_timeout_s=0.3)
    pid = freeze_main(yard, attempt_id, freezer)
    os.kill(yard.supervisor_pid(attempt_id), 9)
    stuck = yard.hear(attempt_id, "stuck")["processes"]
    assert [process["pid"] for process in stuck] == [pid]
    assert yard.journal(attempt_id).exit is None
    other = yard.start(["/bin/sh", "-c", "exit 3"])
    assert yard.wait_end(other)["code"] == 3
    freezer("freezer.state", "THAWED")
    assert yard.wait_end(attempt_id)["cause"] == "supervisor_lost"


def test_stuck_keeps_resources_reserved(make_yard, freezer):
    """R41: the port of a job that cannot be killed is not given to the next one, and `cancelled`
    is not said, until it is dead."""
    port = POOL[0]
    quick = {"RUNYARD_KILL_TIMEOUT_S": "1"}
    server = make_yard("--port-range", f"{port}-{port}", env=quick).start()
    stuck = server.submit(["sleep", "600"], ports=1, grace_s=0.2)
    server.wait(stuck, "running")
    job = wait_for(lambda: server_journal(server, stuck).job, "its identity")
    freezer("cgroup.procs", str(job["pid"]))
    freezer("freezer.state", "FROZEN")
    assert server.cancel(stuck, wait=1).body["status"] == "cancelling"
    waiting = server.submit(["true"], ports=1)
    until(
        lambda: server.job(waiting)["reason"]["params"].get("resource") == "port",
        words=lambda: server.job(waiting)["reason"],
    )
    assert server.status(stuck) == "cancelling"
    [alert] = until(lambda: server.ask(f"/alerts?job={stuck}&status=open"), words="no alert")
    assert (alert["code"], alert["level"]) == ("cannot_be_killed", "critical")
    [holder] = alert["params"]["processes"]
    assert holder["pid"] == job["pid"]
    assert holder.keys() == {"pid", "name", "state", "where", "user"}
    assert server.job(stuck)["reason"]["params"]["processes"] == [holder]
    assert f"pid {holder['pid']}" in " ".join(server.cli("alerts").stdout.split())
    server.kill9()
    server.start()
    assert server.status(stuck) == "cancelling"
    assert server.status(waiting) == "pending"
    freezer("freezer.state", "THAWED")
    server.wait(stuck, "cancelled")
    server.wait(waiting, "completed")
    assert [one["pid"] for one in server.ask(f"/jobs/{stuck}/receipt")["stuck"]] == [job["pid"]]
    until(lambda: [one["status"] for one in server.ask(f"/alerts?job={stuck}")] == ["closed"])


def server_journal(server, ref):
    return journal.read(str(server.data / "attempts" / f"{ref}.1"))
