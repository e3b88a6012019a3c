"""TrainingQueueManager: the queue inside another application."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import runyard
from runyard.stores.opening import open_store
from yards import SETTINGS, SMALL, Truth, keepers_of, until

DOCS = Path(__file__).parents[2] / "docs"
OPEN_GATES = {"gate_cpu": 100, "gate_memory": 100, "gate_disk": 100}


@pytest.fixture
def make_manager(tmp_path):
    made = []

    def make(db=None, **options):
        manager = runyard.TrainingQueueManager(
            db or f"sqlite:///{tmp_path}/app.db", **{**OPEN_GATES, **options}
        )
        made.append(manager)
        return manager

    yield make
    for manager in made:
        manager.stop_processing(timeout=10)
        manager.close()


def submit(manager, command, **fields):
    return manager.submit_training_job(command=command, **{**SMALL, **fields})


@pytest.mark.parametrize("place", [0, 1, 2], ids=["manager", "monitor", "recovery"])
def test_as_documented_in_the_page(tmp_path, place):
    """R23: the examples of docs/embedding.md, run as they are written."""
    page = (DOCS / "embedding.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    example, said = examples[place], re.findall(r"It prints (.*)\.", page)[place]
    assert len(examples) == 3
    expected = re.findall(r"`([^`]+)`", said)
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        env={**os.environ, **SETTINGS, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected, done.stderr
    assert (tmp_path / "training.db").exists()
    until(lambda: not keepers_of(tmp_path / "training.db-runyard"), words="the keeper leaves")


def test_nothing_runs_before_it_is_started_and_enqueued(make_manager):
    """R10, R13, R23: held, enqueued with a priority, run; by name and by number."""
    manager = make_manager(max_concurrent=1, resource_check_interval=5)
    held = submit(manager, ["true"], hold=True)
    waiting = submit(manager, ["true"])
    assert manager.get_job(held)["status"] == "pending"
    number = manager.get_job(held)["id"]
    assert manager.get_job(str(number))["job_id"] == held
    answer = manager.enqueue_training_job(number, priority="high")
    assert (answer["priority"], answer["hold"]) == ("high", False)
    status = manager.get_queue_status()
    assert [job["job_id"] for job in status["waiting"]] == [held, waiting]
    assert (status["max_concurrent"], status["counts"]["pending"]) == (1, 2)
    assert not manager.is_processing
    manager.start_processing()
    manager.start_processing()
    assert manager.wait(number, 30) == "completed"
    assert manager.wait(waiting, 30) == "completed"
    assert manager.get_queue_status()["counts"]["completed"] == 2
    json.dumps(manager.get_queue_status())


def test_cancel(make_manager, tmp_path):
    """R3, R13, R23: in the queue and while it runs."""
    manager = make_manager()
    manager.start_processing()
    truth = Truth(tmp_path / "truth")
    running = submit(
        manager, ["sh", "-c", f"exec 9>{truth.path}; setsid sleep 600 & exec sleep 600"], grace_s=1
    )
    held = submit(manager, ["true"], hold=True)
    until(lambda: manager.get_job(running)["status"] == "running" and truth.held())
    assert manager.cancel(held) == "cancelled"
    assert manager.cancel(manager.get_job(running)["id"], wait=20) == "cancelled"
    assert not truth.held()
    assert manager.cancel(running) == "cancelled"
    truth.close()


def test_errors_are_those_of_the_package(make_manager):
    manager = make_manager()
    with pytest.raises(runyard.JobNotFound):
        manager.enqueue_training_job("job-2222222222222222")
    with pytest.raises(runyard.JobNotFound):
        manager.cancel(4711)
    with pytest.raises(runyard.UnknownField) as caught:
        manager.submit_training_job(comand="x")
    assert caught.value.params["nearest"] == "command"
    held = submit(manager, ["true"], hold=True)
    with pytest.raises(runyard.BadRequest, match="high, medium, low"):
        manager.enqueue_training_job(held, priority="urgent")
    manager.start_processing()
    manager.enqueue_training_job(held)
    assert manager.wait(held, 30) == "completed"
    with pytest.raises(runyard.AlreadyEnded):
        manager.enqueue_training_job(held)
    with pytest.raises(runyard.StartRefused, match="max_concurrent"):
        runyard.TrainingQueueManager("sqlite:///x.db", max_concurrent=0)


def test_stop_processing_ends_what_runs(make_manager, tmp_path):
    """R23: and what waits stays for the next start."""
    manager = make_manager(max_concurrent=1)
    manager.start_processing()
    truth = Truth(tmp_path / "truth")
    running = submit(manager, ["sh", "-c", f"exec 9>{truth.path}; exec sleep 600"], grace_s=2)
    until(lambda: manager.get_job(running)["status"] == "running" and truth.held())
    waiting = submit(manager, ["true"])
    manager.stop_processing()
    assert not truth.held()
    assert manager.get_job(running)["reason"]["code"] == "shutdown"
    assert manager.get_job(waiting)["status"] == "pending"
    manager.start_processing()
    assert manager.wait(waiting, 30) == "completed"
    truth.close()


def test_kept_jobs_are_adopted_by_the_next_manager(make_manager, tmp_path):
    """R42, R23"""
    manager = make_manager()
    manager.start_processing()
    go = tmp_path / "go"
    command = ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done; exit 4"]
    goes_on, ends = submit(manager, ["sleep", "600"], grace_s=1), submit(manager, command)
    for ref in (goes_on, ends):
        until(lambda r=ref: manager.get_job(r)["status"] == "running")
    manager.stop_processing(keep=True)
    manager.close()
    go.touch()
    following = make_manager()
    following.start_processing()
    assert following.wait(ends, 20) == "failed"
    assert following.get_job(ends)["attempt"]["exit_code"] == 4
    assert following.get_job(goes_on)["status"] == "running"
    assert following.get_job(goes_on)["attempt"]["number"] == 1
    assert following.cancel(goes_on, wait=20) == "cancelled"


APPLICATION = """
import sys, time, runyard
manager = runyard.TrainingQueueManager(sys.argv[1], gate_cpu=100, gate_memory=100, gate_disk=100)
manager.start_processing()
fields = dict(cpu_cores=0.01, memory_gb=0.01, gpu_count=0, grace_s=1)
command = f"touch {sys.argv[2]}; exec sleep 600"
print(manager.submit_training_job(command=command, **fields), flush=True)
time.sleep(600)
"""


def test_an_application_killed_in_the_middle(make_manager, tmp_path):
    """R41, R56: kill -9 of the program that embeds it; the next one adopts."""
    db = f"sqlite:///{tmp_path}/app.db"
    application = subprocess.Popen(
        [sys.executable, "-c", APPLICATION, db, str(tmp_path / "runs")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        ref = application.stdout.readline().decode().strip()
        until((tmp_path / "runs").exists)
        with pytest.raises(runyard.DataDirInUse):
            make_manager(db)
    finally:
        application.send_signal(signal.SIGKILL)
        application.wait()
        application.stdout.close()
    manager = make_manager(db)
    manager.start_processing()
    until(lambda: manager.get_job(ref)["status"] == "running")
    assert manager.cancel(ref, wait=20) == "cancelled"


def test_beside_a_running_server(make_yard):
    """R23: a clear answer when a server already runs on the data directory."""
    yard = make_yard().start()
    with pytest.raises(runyard.DataDirInUse) as caught:
        runyard.TrainingQueueManager(f"sqlite:///{yard.data}/runyard.db", data_dir=yard.data)
    assert caught.value.params["pid"] == str(yard.process.pid)
    assert str(yard.data) in caught.value.message
    yard.wait(yard.submit(["true"]), "completed")
    yard.stop()
    manager = runyard.TrainingQueueManager(
        f"sqlite:///{yard.data}/runyard.db", data_dir=yard.data, **OPEN_GATES
    )
    with manager:
        assert manager.get_queue_status()["counts"]["completed"] == 1
        assert manager.wait(submit(manager, ["true"]), 30) == "completed"


def test_a_start_that_fails_can_be_repeated(make_manager, tmp_path):
    """R23: and a `with` that fails lets go of the data directory."""
    manager = make_manager()
    in_the_way = tmp_path / "app.db-runyard" / "news.sock"
    in_the_way.mkdir()
    with pytest.raises(OSError, match=r"news\.sock"):
        manager.start_processing()
    assert not manager.is_processing
    in_the_way.rmdir()
    manager.start_processing()
    assert manager.wait(submit(manager, ["true"]), 30) == "completed"
    manager.close()
    in_the_way.mkdir()
    with pytest.raises(OSError, match=r"news\.sock"), make_manager():
        pass
    in_the_way.rmdir()
    make_manager().start_processing()


def test_with_a_store_of_ones_own(tmp_path):
    """`db` may be an open store, which stays open."""
    store = open_store(f"sqlite:///{tmp_path}/own.db")
    try:
        options = {"data_dir": tmp_path / "data", **OPEN_GATES}
        with runyard.TrainingQueueManager(store, **options) as manager:
            ref = submit(manager, ["true"])
            assert manager.wait(ref, 30) == "completed"
        with store.read() as reader:
            assert reader.job(ref).ref == ref
    finally:
        store.close()


def test_on_postgresql(postgres_url, make_manager, tmp_path):
    """R23"""
    manager = make_manager(postgres_url, data_dir=tmp_path / "data")
    manager.start_processing()
    assert manager.wait(submit(manager, ["true"]), 30) == "completed"
