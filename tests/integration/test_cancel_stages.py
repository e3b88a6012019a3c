"""A cancel takes effect wherever the job is; it is never an error, and its receipt says where it
met the job. Preparations have tests of their own."""

import os
import signal
import sys
import time

import pytest

from runyard.supervisor import journal
from yards import RunningYard, Truth, alive, keeper_pid, until

UP = "echo up; exec sleep 600"
FIELDS = {
    "attempt_id",
    "requested_by",
    "requested_at",
    "stage",
    "signals",
    "processes_ended",
    "proof",
    "stuck",
    "gpus",
    "ports",
    "shm_bytes",
    "temp_removed",
    "seconds",
    "ended_at",
}
COOPERATIVE = """
import signal, sys, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
print("up", flush=True)
while not asked:
    time.sleep(0.02)
print("saved", flush=True)
sys.exit(0)
"""


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    # What is left behind here obeys, however late it gets to it.
    env = {"RUNYARD_LEFTOVER_GRACE_S": "30"}
    yard = RunningYard(tmp_path_factory.mktemp("stages"), max_concurrent=4, env=env).start()
    yield yard
    yard.stop()


def cancelled(yard, ref, *, stage, by="local"):
    """Cancelled, by whom, at which stage; the receipt has all its fields."""
    job = yard.wait(ref, "cancelled")
    assert job["reason"] == {"code": "user_cancelled", "params": {"by": by}}
    receipt = yard.ask(f"/jobs/{ref}/receipt")
    assert receipt.keys() >= FIELDS
    assert (receipt["requested_by"], receipt["stage"]) == (by, stage)
    assert receipt["requested_at"] is not None
    codes = [event["code"] for event in yard.ask(f"/jobs/{ref}/events")]
    assert "job_failed" not in codes
    assert codes[-1] in ("job_cancelled", "alert_closed")
    return receipt


def is_up(yard, ref):
    until(lambda: yard.logs(ref)[:1] == ["up"])
    yard.wait(ref, "running")


def test_cancel_before_scheduling(yard):
    """R1, R3: nothing of it ever was; the receipt says that."""
    ref = yard.submit(["true"], hold=True)
    assert yard.cancel(ref).body["status"] == "cancelled"
    receipt = cancelled(yard, ref, stage=None)
    assert (receipt["proof"], receipt["processes_ended"]) == ("never_started", 0)
    assert yard.attempts(ref) == []


def test_cancel_while_scheduled(make_yard):
    """R1: its keeper does not answer, so it was never handed over; then it is, and starts not."""
    yard = make_yard().start()
    first = yard.submit(["true"])
    yard.wait(first, "completed")
    keeper = keeper_pid(yard.data)
    os.kill(keeper, signal.SIGSTOP)
    marker = yard.folder / "ran"
    try:
        ref = yard.submit(["touch", str(marker)])
        yard.wait(ref, "scheduled")
        answer = yard.cancel(ref, wait=0)
        assert (answer.status, answer.body["status"]) == (202, "cancelling")
        assert answer.body["reason"]["code"] == "waiting_for_step"
    finally:
        os.kill(keeper, signal.SIGCONT)
    cancelled(yard, ref, stage="starting")
    assert not marker.exists()
    [attempt] = yard.attempts(ref)
    assert (attempt["end"], attempt["exit_code"]) == ("cancelled", None)


def test_cancel_while_starting(yard, tmp_path):
    """R1: at whatever step of its start the request arrives, twenty times."""
    refs = []
    for n in range(20):
        ref = yard.submit(["sh", "-c", f"echo $$ > {tmp_path}/{n}; exec sleep 600"], grace_s=5)
        time.sleep(0.002 * n)
        assert yard.cancel(ref, wait=0).body["status"] in ("cancelling", "cancelled")
        refs.append(ref)
    for n, ref in enumerate(refs):
        yard.wait(ref, "cancelled")
        stage = yard.ask(f"/jobs/{ref}/receipt")["stage"]
        assert stage in (None, "starting", "running")
        cancelled(yard, ref, stage=stage)
        path = tmp_path / str(n)
        if path.exists() and (pid := path.read_text().strip()):
            assert not alive(int(pid))


def test_cancel_between_steps(yard):
    """R1, R3: it saves, exits with 0 within its grace, and is cancelled, not completed."""
    ref = yard.submit([sys.executable, "-c", COOPERATIVE], grace_s=30)
    is_up(yard, ref)
    yard.cancel(ref)
    receipt = cancelled(yard, ref, stage="running")
    assert yard.logs(ref) == ["up", "saved"]
    assert [sent["signal"] for sent in receipt["signals"]][:1] == ["TERM"]
    assert "KILL" not in [sent["signal"] for sent in receipt["signals"]]
    [attempt] = yard.attempts(ref)
    assert (attempt["exit_code"], attempt["end"]) == (0, "cancelled")


def test_cancel_in_a_step_that_never_returns(yard, tmp_path):
    """R1, R5: until it is gone people see what is waited for, and how long."""
    truth = Truth(tmp_path / "truth")
    command = f"exec 9>{truth.path}; trap '' TERM; {UP}"
    ref = yard.submit(["sh", "-c", command], grace_s=4)
    is_up(yard, ref)
    began = time.time()
    reason = yard.cancel(ref, wait=0).body["reason"]
    assert reason["code"] == "waiting_for_step"
    params = reason["params"]
    assert (params["by"], params["cause"], params["grace_s"]) == ("local", "user", 4)
    assert 0 < params["left_s"] <= 4
    assert began - 1 <= params["until"] - 4 <= time.time() + 1
    receipt = cancelled(yard, ref, stage="running")
    assert not truth.held()
    truth.close()
    sent = [(one["signal"], one["target"]) for one in receipt["signals"]]
    assert sent == [("TERM", "group"), ("KILL", "children")]
    assert receipt["signals"][0]["at"] < receipt["signals"][1]["at"]
    assert receipt["seconds"] >= 4
    assert receipt["processes_ended"] >= 1


def test_cancel_while_finishing(make_yard):
    """R1, R3: main has exited with 0, what it left is being ended; who asked is not lost."""
    yard = make_yard(env={"RUNYARD_LEFTOVER_GRACE_S": "60"}).start()
    stubborn = "trap '' TERM; sleep 600 & echo up"
    ref = yard.submit(["sh", "-c", stubborn])
    until(lambda: yard.job(ref)["stage"] == "finishing", words=lambda: yard.job(ref))
    assert yard.status(ref) == "running"
    yard.api("POST", f"/jobs/{ref}/force-kill?wait=20", timeout=40)
    receipt = cancelled(yard, ref, stage="finishing")
    assert receipt["seconds"] > 0
    [attempt] = yard.attempts(ref)
    assert (attempt["exit_code"], attempt["end"]) == (0, "cancelled")


def test_cancel_while_retrying(make_yard):
    """R1, R3: between two attempts nothing lives; it is cancelled at once and not tried again."""
    yard = make_yard(env={"RUNYARD_RETRY_DELAYS": "600"}).start()
    ref = yard.submit(["false"], max_retries=3)
    yard.wait(ref, "retrying")
    answer = yard.cancel(ref, wait=0)
    assert (answer.status, answer.body["status"]) == (200, "cancelled")
    assert yard.job(ref)["reason"] == {"code": "user_cancelled", "params": {"by": "local"}}
    receipt = cancelled(yard, ref, stage=None)
    assert (receipt["proof"], receipt["processes_ended"]) == ("between_attempts", 0)
    assert len(yard.attempts(ref)) == 1
    assert yard.api("POST", f"/jobs/{ref}/cancel").body["status"] == "cancelled"


def test_a_job_that_ended_by_itself_has_a_receipt(yard):
    """R2: nobody asked; what it left was ended."""
    ref = yard.submit(["sh", "-c", "sleep 600 & exit 3"], ports=1)
    yard.wait(ref, "failed")
    receipt = yard.ask(f"/jobs/{ref}/receipt")
    assert receipt.keys() >= FIELDS
    assert (receipt["requested_by"], receipt["requested_at"]) == (None, None)
    assert receipt["processes_ended"] == 2
    assert [sent["target"] for sent in receipt["signals"]] == ["leftovers"]
    assert len(receipt["ports"]) == 1
    assert receipt["temp_removed"] is True


def test_a_cancel_that_hangs_is_swept_again(make_yard, tmp_path):
    """R6: its supervisor is stopped and does nothing. People are told, what is left is killed, the
    supervisor is let go on, and all of it is in the events and in the log."""
    settings = {"RUNYARD_STALE_CANCELLING_S": "2", "RUNYARD_RECONCILE_INTERVAL": "0.5"}
    yard = make_yard(env=settings).start()
    truth = Truth(tmp_path / "truth")
    ref = yard.submit(["sh", "-c", f"exec 9>{truth.path}; {UP}"], grace_s=1)
    is_up(yard, ref)
    record = journal.read(str(yard.data / "attempts" / f"{ref}.1"))
    os.kill(record.supervisor["pid"], signal.SIGSTOP)
    yard.cancel(ref, wait=0)
    cancelled(yard, ref, stage="running")
    assert not truth.held()
    truth.close()
    # The sweep is told when it is done, which may be a moment after the end it brought about.
    until(lambda: "job_swept" in [event["code"] for event in yard.ask(f"/jobs/{ref}/events")])
    until(lambda: [alert["status"] for alert in yard.ask(f"/alerts?job={ref}")] == ["closed"])
    [alert] = yard.ask(f"/alerts?job={ref}")
    assert (alert["code"], alert["level"], alert["status"]) == (
        "cancel_stale",
        "critical",
        "closed",
    )
    assert alert["actions_taken"][0]["action"] == "swept"
    log = yard.data / "logs" / "server.log"
    until(lambda: "swept again: still cancelling after" in log.read_text())
    assert yard.cli("alerts").stdout.strip() == "Nothing needs attention."
    assert "cancel_stale" in yard.cli("alerts", "--all", "--json").stdout
