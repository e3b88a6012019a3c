"""Fire drills with real servers, real processes and real faults."""

import json
import sys

import pytest

from runyard.data_dir import DataDir
from runyard.domain import errors
from runyard.engine.access.actor import SYSTEM
from runyard.server import open_yard
from runyard.settings import Settings
from yards import until

FAULT = "drill_fault"

# Saves a checkpoint every step in the format of torch.save, goes on from the one it is given.
TRAINING = """
import os, re, sys, time, zipfile
steps = int(sys.argv[1])
start = 0
if given := os.environ.get("RUNYARD_RESUME_FROM"):
    start = int(re.search(r"step_(\\d+)", given)[1])
    zipfile.ZipFile(given).testzip()
    print("resumed at", start, flush=True)
folder = os.environ["RUNYARD_CHECKPOINT_DIR"]
kept = []
for step in range(start + 1, steps + 1):
    time.sleep(0.2)
    {work}
    path = f"{folder}/step_{step}.pt"
    with zipfile.ZipFile(path + ".part", "w") as file:
        file.writestr("m/data.pkl", b"x" * 20)
        file.writestr("m/data/0", os.urandom({size}))
    os.replace(path + ".part", path)
    print(f"step {step}/{steps} loss: {1 / step}", flush=True)
"""


def submitted(yard, *, steps, work="pass", size=20_000, flags=(), **fields):
    """A job to drill, cancelled itself: it is only what the clones are made of. They take much
    longer than a fault and the recovery from it, and are ended when those are seen."""
    code = TRAINING.replace("{work}", work).replace("{size}", str(size))
    ref = yard.submit(
        [sys.executable, "-c", code, str(steps), *flags], hold=True, grace_s=1, **fields
    )
    yard.cancel(ref)
    return ref


def drill(yard, fault, ref, *flags):
    done = yard.cli("drill", fault, ref, "--json", *flags, timeout=110)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def quick_yard(make_yard):
    return make_yard(env={"RUNYARD_STALL_MIN_S": "3", "RUNYARD_MONITORING_INTERVAL": "1"}).start()


def test_kill9_of_a_job_that_resumes_passes(yard):
    ref = submitted(yard, steps=400)
    code, told = drill(yard, "kill9", ref, "--after", "3s")
    assert (code, told["verdict"]) == (0, "pass"), told
    assert told["recovery_s"] > 0
    clone = yard.job(told["job_id"])
    assert clone["labels"] == {"drill": "kill9", "drill_of": ref}
    assert yard.status(ref) == "cancelled"
    first = yard.attempts(told["job_id"])[0]
    assert first["signal"] == 9
    events = yard.ask(f"/jobs/{told['job_id']}/events")
    assert "drill_fault" in [one["code"] for one in events]


def test_a_job_that_cannot_recover_fails(yard):
    """What it needs is gone after its first start."""
    code = (
        "import os, sys, time\n"
        "if os.environ['RUNYARD_ATTEMPT'] != '1':\n"
        "    sys.exit('ModuleNotFoundError: No module named x')\n"
        "time.sleep(600)\n"
    )
    ref = yard.submit([sys.executable, "-c", code], hold=True)
    yard.cancel(ref)
    status, told = drill(yard, "kill9", ref, "--after", "1s")
    assert (status, told["verdict"]) == (1, "fail"), told
    assert told["code"] == "drill_not_recovered"


def test_a_corrupt_checkpoint_is_passed_over(yard):
    ref = submitted(yard, steps=400)
    code, told = drill(yard, "corrupt", ref, "--after", "1s")
    assert (code, told["verdict"]) == (0, "pass"), told
    events = yard.ask(f"/jobs/{told['job_id']}/events")
    [fault] = [one for one in events if one["code"] == "drill_fault"]
    [chosen] = [one for one in events if one["code"] == "checkpoint_chosen"]
    assert fault["params"]["path"] != chosen["params"]["path"]


def test_memory_that_is_taken_away_is_felt(yard):
    """The program asks for more and more; with the fault it gets a MemoryError."""
    ref = submitted(yard, steps=150, work="kept.append(bytearray(8 << 20))")
    code, told = drill(yard, "oom", ref, "--after", "2s")
    assert (code, told["verdict"]) == (0, "pass"), told
    log = yard.logs(told["job_id"], attempt=1)
    assert "MemoryError" in log[-1]


def test_a_disk_that_takes_no_more_is_waited_for(yard):
    """An ordinary program, which is told "File too large" where a full disk says "No space"."""
    recovery = {"disk_full": {"delays": [1]}}
    ref = submitted(yard, steps=100, size=1_500_000, recovery=recovery)
    code, told = drill(yard, "disk", ref, "--after", "1s", "--timeout", "100s")
    log = yard.logs(told["job_id"], attempt=1)
    assert "File too large" in log[-1], (told, log[-3:])
    assert (code, told["verdict"]) == (0, "pass"), told
    first = yard.attempts(told["job_id"])[0]
    assert first["diagnosis"]["category"] == "disk_full"
    assert "File too large" in first["diagnosis"]["root"]["text"]
    assert first["plan"]["strategy"] == "wait_for_space"


def test_a_hang_is_noticed(quick_yard):
    ref = submitted(quick_yard, steps=4000)
    code, told = drill(quick_yard, "hang", ref, "--after", "6s", "--timeout", "100s")
    assert (code, told["code"]) == (0, "drill_noticed"), told
    until(lambda: quick_yard.status(told["job_id"]) == "cancelled")


def test_a_loss_that_is_no_number_is_gone_back_from(quick_yard):
    """The detectors see it, the end is a divergence, and the next attempt begins at a checkpoint
    before the bad step with half the learning rate."""
    ref = submitted(quick_yard, steps=400, flags=("--learning_rate", "0.1"))
    code, told = drill(quick_yard, "nan", ref, "--after", "1s")
    assert (code, told["code"]) == (0, "drill_diverged"), told
    clone = told["job_id"]
    [fault] = [one for one in quick_yard.ask(f"/jobs/{clone}/events") if one["code"] == FAULT]
    first = quick_yard.attempts(clone)[0]
    assert first["diagnosis"]["category"] == "nan"
    assert first["diagnosis"]["facts"]["bad_step"] == fault["params"]["bad_step"]
    [change] = first["plan"]["changes"]
    assert (change["name"], float(change["after"])) == ("--learning_rate", 0.05)
    alerts = quick_yard.ask(f"/alerts?job={clone}")
    assert "not_finite" in [one["code"] for one in alerts]
    [resumed] = [one for one in quick_yard.logs(clone) if one.startswith("resumed at")]
    assert int(resumed.split()[-1]) < fault["params"]["bad_step"]


def test_a_server_that_dies_comes_back_and_goes_on(yard):
    """The clone has one attempt and one main process from its start to its end."""
    ref = submitted(yard, steps=2000)
    other = yard.submit(["sleep", "600"], grace_s=1)
    yard.wait(other, "running")
    code, told = drill(yard, "server", ref, "--after", "2s")
    assert (code, told["code"]) == (0, "drill_adopted"), told
    assert told["recovery_s"] > 0
    assert yard.said().count("Runyard listens on") == 2
    clone = told["job_id"]
    events = yard.ask(f"/jobs/{clone}/events")
    [fault] = [one for one in events if one["code"] == FAULT]
    [adopted] = [one for one in events if one["code"] == "job_adopted"]
    assert adopted["params"] == {"attempt": 1, "pid": fault["params"]["pid"]}
    assert told["attempts"] == 1
    assert len(yard.attempts(clone)) == 1
    # The others went on too, and the server that came back has them in hand.
    assert yard.status(other) == "running"
    assert yard.cancel(other).body["status"] == "cancelled"


def test_a_server_at_any_port_comes_back_at_the_same(make_yard):
    yard = make_yard()
    yard.flags += ["--port", "0"]
    yard.spawn()
    published = yard.data / "server.json"
    yard.url = json.loads(until(lambda: published.exists() and published.read_text()))["url"]
    until(yard.up)
    yard.key = (yard.data / "admin.key").read_text().strip()
    ref = submitted(yard, steps=2000)
    code, told = drill(yard, "server", ref, "--after", "1s")
    assert (code, told["code"]) == (0, "drill_adopted"), told
    assert json.loads(published.read_text())["url"] == yard.url


def test_only_an_admin_may_let_the_server_die(yard):
    ref = submitted(yard, steps=1)
    made = yard.api("POST", "/keys", {"name": "ann", "role": "user"}).body
    theirs = {"Authorization": f"Bearer {made['secret']}"}
    own = yard.api(
        "POST", "/jobs", {"name": "x", "command": "true", "hold": True}, headers=theirs
    ).body["job_id"]
    answer = yard.api("POST", f"/jobs/{own}/drill", {"fault": "server"}, headers=theirs)
    assert (answer.status, answer.body["code"]) == (403, "forbidden")
    assert yard.api("POST", f"/jobs/{ref}/drill", {"fault": "flood"}).status == 422


def test_a_server_inside_another_program_does_not_die(tmp_path):
    """It would take that program with it."""
    settings = Settings(data_dir=tmp_path / "data", gate_cpu=100, gate_memory=100, gate_disk=100)
    with DataDir.open(settings.data_dir), open_yard(settings) as embedded:
        with pytest.raises(errors.DrillServerStays):
            embedded.drills.start("job-any", "server", SYSTEM)
        with pytest.raises(errors.DrillNotAvailable):
            embedded.drills.start("job-any", "flood", SYSTEM)


def test_only_clones_are_struck(yard):
    ref = yard.submit(["sleep", "600"], grace_s=1, labels={"drill": "kill9"})
    yard.wait(ref, "running")
    answer = yard.api("POST", f"/jobs/{ref}/drill/fault")
    assert (answer.status, answer.body["code"]) == (409, "conflict")
    assert yard.status(ref) == "running"
    yard.cancel(ref)
