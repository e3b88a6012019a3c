"""TC-01 to TC-07: a job from submit to its recorded end, on a real server."""

import sys

from yards import POOL, SMALL, Truth, until

TREE = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY)
os.set_inheritable(fd, True)
for kind in ("child", "session"):
    if os.fork() == 0:
        if kind == "session":
            os.setsid()
        os.write(fd, b"%s\\n" % kind.encode())
        time.sleep(300)
os.write(fd, b"main\\n")
time.sleep(300)
"""


def hold_until(file):
    return ["sh", "-c", f"while [ ! -e {file} ]; do sleep 0.05; done"]


def test_tc_01_submit_gives_pending(yard):
    """R40 TC-01, R36: the answer names the job, its status and when it was submitted."""
    answer = yard.api("POST", "/jobs", {"command": ["true"], **SMALL})
    assert answer.status == 201
    assert answer.body["status"] == "pending"
    assert answer.body["job_id"].startswith("job-")
    assert answer.body["submitted_at"]


def test_tc_02_starts_by_itself(yard):
    """R40 TC-02, R31, R33: with free resources a job is scheduled and started unasked."""
    ref = yard.submit(["sleep", "600"], grace_s=1)
    now = yard.wait(ref, "running")
    assert now["scheduled_at"]
    assert now["started_at"] >= now["scheduled_at"]
    codes = [event["code"] for event in yard.ask(f"/jobs/{ref}/events")]
    assert codes == ["job_submitted", "job_scheduled", "job_started"]


def test_tc_03_stays_pending_with_the_reason(make_yard, tmp_path):
    """R40 TC-03, R11, R33, R52: what does not fit waits, says why, and starts when it can."""
    yard = make_yard(max_concurrent=1).start()
    go = tmp_path / "go"
    first = yard.submit(hold_until(go))
    yard.wait(first, "running")
    second = yard.submit(["true"])
    waiting = until(
        lambda: (job := yard.job(second))["reason"]["code"] == "max_concurrent" and job
    )
    assert waiting["status"] == "pending"
    assert waiting["reason"]["params"] == {"limit": 1, "running": 1}
    assert waiting["wait"]["position"] == 1
    assert first in waiting["wait"]["blockers"]
    go.touch()
    yard.wait(second, "completed")


def test_a_request_above_the_machine_waits_and_says_so(yard):
    """R33: never_fits, with what was wanted and the largest there is."""
    ref = yard.submit(["true"], cpu_cores=4000)
    job = until(lambda: (job := yard.job(ref))["reason"]["code"] == "never_fits" and job)
    assert job["status"] == "pending"
    assert job["reason"]["params"]["resource"] == "cpu"


def test_tc_04_normal_end_is_completed(yard):
    """R40 TC-04, R35: progress 100, exit code 0, true times, a receipt."""
    ref = yard.submit(["sh", "-c", "echo out; echo err >&2"])
    done = yard.wait(ref, "completed")
    assert done["progress"] == 100
    assert done["started_at"] <= done["completed_at"]
    [attempt] = yard.attempts(ref)
    assert (attempt["exit_code"], attempt["end"], attempt["signal"]) == (0, "completed", None)
    assert sorted(yard.logs(ref)) == ["err", "out"]
    assert yard.ask(f"/jobs/{ref}/receipt")["proof"] == "echild"


def test_tc_05_and_06_retried_then_failed(yard):
    """R40 TC-05, TC-06, R21: retry_count grows; after max_retries it is failed."""
    ref = yard.submit(["sh", "-c", "exit 3"], max_retries=2)
    until(lambda: yard.job(ref)["retry_count"] >= 1)
    end = yard.wait(ref, "failed")
    assert end["retry_count"] == 2
    assert [attempt["exit_code"] for attempt in yard.attempts(ref)] == [3, 3, 3]
    assert end["reason"]["code"] == "retries_used_up"
    assert end["reason"]["params"]["last"] == {"code": "exit_code", "params": {"code": 3}}


def test_a_retry_that_succeeds_completes_the_job(yard, tmp_path):
    """R31: failed -> retrying -> running -> completed."""
    flag = tmp_path / "second"
    ref = yard.submit(
        ["sh", "-c", f"[ -e {flag} ] && exit 0; touch {flag}; exit 1"], max_retries=1
    )
    done = yard.wait(ref, "completed")
    assert done["retry_count"] == 1
    assert [attempt["end"] for attempt in yard.attempts(ref)] == ["failed", "completed"]


def test_tc_07_cancel_ends_the_processes(yard, tmp_path):
    """R40 TC-07, R3, R8: cancelled once every process is gone, also one in its own session."""
    truth = Truth(tmp_path / "truth")
    ref = yard.submit([sys.executable, "-S", "-c", TREE, str(truth.path)], grace_s=2)
    until(lambda: truth.held() and truth.data.count(b"\n") == 3, words=lambda: truth.data)
    answer = yard.cancel(ref)
    assert answer.body["status"] == "cancelled"
    assert not truth.held()
    assert yard.status(ref) == "cancelled"
    assert yard.job(ref)["reason"]["code"] == "user_cancelled"


def test_cancel_before_start(make_yard):
    """R13, R1: cancelling in the queue needs no process at all."""
    yard = make_yard(max_concurrent=1).start()
    yard.wait(yard.submit(["sleep", "600"], grace_s=1), "running")
    ref = yard.submit(["true"])
    assert yard.cancel(ref).body["status"] == "cancelled"
    assert yard.attempts(ref) == []
    assert yard.ask(f"/jobs/{ref}/receipt")["processes_ended"] == 0


def test_a_cancelled_job_that_exits_zero_is_cancelled(yard):
    """R3: exit 0 during the grace is a cancel, not a success."""
    ref = yard.submit(["sh", "-c", "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done"])
    until(lambda: "up" in yard.logs(ref))
    assert yard.cancel(ref).body["status"] == "cancelled"
    [attempt] = yard.attempts(ref)
    assert (attempt["exit_code"], attempt["end"]) == (0, "cancelled")


def test_force_kill_needs_no_grace(yard):
    """R7"""
    ref = yard.submit(["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"])
    until(lambda: "up" in yard.logs(ref))
    assert yard.api("POST", f"/jobs/{ref}/cancel").body["status"] == "cancelling"
    assert yard.api("POST", f"/jobs/{ref}/force-kill").ok
    yard.wait(ref, "cancelled")


def test_exit_signal_and_missing_things_are_told(yard, tmp_path):
    """R35: code or signal, never both; a missing program or directory fails at once, unretried."""
    crashed = yard.submit(["sh", "-c", "kill -SEGV $$"])
    missing = yard.submit(["no-such-program-here"], max_retries=3)
    nowhere = yard.submit(["true"], working_dir=str(tmp_path / "none"), max_retries=3)
    assert yard.wait(crashed, "failed")["reason"]["params"]["name"] == "SIGSEGV"
    [attempt] = yard.attempts(crashed)
    assert (attempt["exit_code"], attempt["signal"]) == (None, 11)
    assert yard.wait(missing, "failed")["reason"]["code"] == "exec_failed"
    assert yard.wait(nowhere, "failed")["reason"]["code"] == "cwd_missing"
    assert len(yard.attempts(nowhere)) == 1


def test_an_output_path_that_cannot_be_made(yard, tmp_path):
    """R35: failed at once, with the path and the system's own word for it, without a retry."""
    (tmp_path / "file").touch()
    wanted = tmp_path / "file" / "output"
    ref = yard.submit(["true"], output_path=str(wanted), max_retries=3)
    job = yard.wait(ref, "failed")
    assert job["reason"]["code"] == "start_failed"
    assert job["reason"]["params"]["path"] == str(wanted)
    assert job["reason"]["params"]["message"] == "Not a directory"
    assert job["retry_count"] == 0
    [attempt] = yard.attempts(ref)
    assert (attempt["end"], attempt["exit_code"]) == ("failed", None)
    said = yard.cli("explain", ref).stdout
    assert str(wanted) in said
    assert "Not a directory" in said


def test_a_relative_output_path(yard, tmp_path):
    """R39: below the working directory, as the program sees it."""
    command = ["sh", "-c", "pwd; echo weights >results/run/model; echo $RUNYARD_OUTPUT_DIR"]
    ref = yard.submit(command, working_dir=str(tmp_path), output_path="results/run")
    yard.wait(ref, "completed")
    assert (tmp_path / "results" / "run" / "model").read_text() == "weights\n"
    assert yard.logs(ref) == [str(tmp_path), str(tmp_path / "results" / "run")]


def test_a_time_limit_ends_the_attempt(yard):
    """timeout_equals_cancel_with_cause, but it is a failure and is told as one."""
    ref = yard.submit(["sleep", "600"], timeout_s=0.3, grace_s=1)
    assert yard.wait(ref, "failed")["reason"]["code"] == "timed_out"
    [attempt] = yard.attempts(ref)
    assert attempt["end"] == "timed_out"


def test_priority_then_first_come(make_yard, tmp_path):
    """R10: high before medium before low, and inside a level in order of submission."""
    yard = make_yard(max_concurrent=1).start()
    yard.api("POST", "/system/stop-queue")
    line = tmp_path / "line"
    for name, priority in [("l1", "low"), ("m1", "medium"), ("h1", "high"), ("h2", "high")]:
        yard.submit(["sh", "-c", f"echo {name} >> {line}"], priority=priority)
    last = yard.submit(["sh", "-c", f"echo m2 >> {line}"])
    assert yard.ask("/queue/status")["dispatching"] is False
    yard.api("POST", "/system/start-queue")
    yard.wait(last, "completed")
    until(lambda: line.read_text().split() == ["h1", "h2", "m1", "m2", "l1"], words=line.read_text)


def test_dependencies(yard):
    """R25: a dependent waits for success, and is cancelled when that cannot come any more."""
    yard.api("POST", "/system/stop-queue")
    good, bad = yard.submit(["true"]), yard.submit(["false"])
    after_good = yard.submit(["true"], depends_on=[good])
    after_bad = yard.submit(["true"], depends_on=[bad])
    grandchild = yard.submit(["true"], depends_on=[after_bad])
    anyway = yard.submit(["true"], depends_on=[{"job": bad, "on": "end"}])
    until(lambda: yard.job(after_good)["reason"]["code"] == "dependency")
    yard.api("POST", "/system/start-queue")
    for ref in (after_good, anyway):
        yard.wait(ref, "completed")
    for ref in (after_bad, grandchild):
        assert yard.wait(ref, "cancelled")["reason"]["code"] == "dependency_failed"


def test_array_limit(make_yard, tmp_path):
    """At most as many of an array at once as it says."""
    yard = make_yard(max_concurrent=8).start()
    go = tmp_path / "go"
    jobs = [
        {"command": hold_until(go), **SMALL, "array": {"array_id": "a1", "index": n, "limit": 2}}
        for n in range(4)
    ]
    answer = yard.api("POST", "/jobs/batch", {"jobs": jobs})
    refs = [job["job_id"] for job in answer.body["jobs"]]
    for ref in refs[:2]:
        yard.wait(ref, "running")
    until(lambda: yard.job(refs[2])["reason"]["code"] == "array_limit")
    go.touch()
    for ref in refs:
        yard.wait(ref, "completed")


def test_ports_come_from_the_pool_and_go_back(make_yard, tmp_path):
    """R55: RUNYARD_PORT_*, no port twice, and free again after the end."""
    both = POOL[:2]
    yard = make_yard("--port-range", f"{both[0]}-{both[1]}").start()
    out = tmp_path / "ports"
    show = ["sh", "-c", f"echo $RUNYARD_PORT_HTTP $RUNYARD_PORT_RPC >> {out}; exec sleep 600"]
    first = yard.submit(show, ports=["http", "rpc"], grace_s=1)
    yard.wait(first, "running")
    second = yard.submit(show, ports=["http", "rpc"], grace_s=1)
    until(lambda: yard.job(second)["reason"]["params"].get("resource") == "port")
    yard.cancel(first)
    yard.wait(second, "running")
    until(lambda: out.read_text().split() == [str(port) for port in both] * 2, words=out.read_text)


def test_a_job_with_an_image_never_runs_outside_it(yard):
    """R34, R36: the users' example is accepted, and waits with a reason where it cannot run."""
    example = {
        "name": "ResNet50",
        "job_type": "single",
        "cpu_cores": 8,
        "memory_gb": 32,
        "gpu_count": 2,
        "gpu_type": "RTX 4090",
        "image": "pytorch/pytorch:2.0-cuda11.8",
        "command": "python train.py --epochs 100",
        "output_path": "/workspace/output",
    }
    answer = yard.call("POST", "/api/training-jobs", example)
    assert (answer.status, answer.body["status"]) == (201, "pending")
    ref = answer.body["job_id"]
    job = until(lambda: (job := yard.job(ref))["reason"]["code"] != "queued" and job)
    assert job["reason"]["code"] in ("executor_unavailable", "never_fits", "gpu_type_absent")
    small = {**SMALL, "image": "busybox", "command": ["true"]}
    ref = yard.api("POST", "/jobs", small).body["job_id"]
    job = until(lambda: (job := yard.job(ref))["reason"]["code"] != "queued" and job)
    assert job["reason"] == {"code": "executor_unavailable", "params": {"executor": "docker"}}
    refused = yard.api("POST", "/jobs", {**small, "executor": "local"})
    assert (refused.status, refused.body["code"]) == (422, "invalid_job")


def test_a_time_limit_is_told_while_the_job_has_its_grace(yard, tmp_path):
    """R27: still running, finishing, stopping because its time is over; then timed out."""
    done = tmp_path / "done"
    main = f"trap '' TERM; while [ ! -e {done} ]; do sleep 0.05; done"
    ref = yard.submit(main, timeout_s=4, grace_s=300)  # time to set its trap
    job = until(lambda: (found := yard.job(ref))["stage"] == "finishing" and found)
    assert (job["status"], job["attempt"]["status"]) == ("running", "stopping")
    assert job["reason"] == {"code": "stopping", "params": {"cause": "timeout"}}
    [told] = [e for e in yard.ask(f"/jobs/{ref}/events") if e["code"] == "job_stopping"]
    assert told["params"] == {"cause": "timeout", "grace_s": 300}
    done.touch()
    assert yard.wait(ref, "failed")["reason"]["code"] == "timed_out"
