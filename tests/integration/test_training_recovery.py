"""TrainingRecoveryService: repairing from inside another application; R22, R23."""

import asyncio
import sys

import pytest

import runyard
from yards import until

SMALL = {"cpu_cores": 0.01, "memory_gb": 0.01, "gpu_count": 0, "max_retries": 0}


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return f"sqlite:///{tmp_path}/app.db"


def submit(manager, script, *arguments, **fields):
    command = [sys.executable, "-c", script, *arguments]
    return manager.submit_training_job(command=command, **{**SMALL, **fields})


def test_what_cannot_be_repaired_is_said(db):
    """R18, R23: no attempt is started, and the reason says why."""
    gates = {"gate_cpu": 100, "gate_memory": 100, "gate_disk": 100}
    with runyard.TrainingQueueManager(db, **gates) as manager:
        service = runyard.TrainingRecoveryService(manager)
        broken = submit(manager, "import not_a_module_of_ours")
        assert manager.wait(broken, 60) == "failed"
        found = asyncio.run(service.attempt_recovery(broken))
        assert (found["started"], found["reason"]["code"]) == (False, "not_retryable")
        assert found["diagnosis"]["category"] == "import"
        assert manager.get_job(broken)["status"] == "failed"
        running = submit(manager, "import time; time.sleep(600)")
        until(lambda: manager.get_job(running)["status"] == "running")
        with pytest.raises(runyard.NotEnded):
            asyncio.run(service.analyze_failure(running))
        with pytest.raises(runyard.NotEnded):
            asyncio.run(service.attempt_recovery(running))
        with pytest.raises(runyard.JobNotFound):
            asyncio.run(service.analyze_failure("job-none"))
        manager.cancel(running, force=True, wait=20)
        with pytest.raises(runyard.AlreadyEnded):
            asyncio.run(service.attempt_recovery(running))


def test_an_unknown_failure_waits_and_is_counted(db):
    """R21: retry_delays before each, at most max_retries."""
    gates = {"gate_cpu": 100, "gate_memory": 100, "gate_disk": 100}
    with runyard.TrainingQueueManager(db, **gates) as manager:
        service = runyard.TrainingRecoveryService(db, max_retries=1, retry_delays=[0.5])
        odd = submit(manager, "import sys; sys.exit(3)")
        assert manager.wait(odd, 60) == "failed"
        begun = asyncio.run(service.attempt_recovery(odd))
        assert begun["started"]
        assert begun["plan"]["strategy"] == "retry_same"
        assert 0.5 <= begun["plan"]["delay_s"] < 0.6
        assert manager.get_job(odd)["retry_count"] == 1
        until(lambda: manager.get_job(odd)["attempt"]["number"] == 2, 60)
        assert manager.wait(odd, 60) == "failed"
        again = asyncio.run(service.attempt_recovery(odd))
        assert (again["started"], again["reason"]["code"]) == (False, "retries_used_up")


def test_beside_no_manager_it_still_tells(db):
    """R23: by what the store kept; a retry waits for whoever runs jobs."""
    gates = {"gate_cpu": 100, "gate_memory": 100, "gate_disk": 100}
    with runyard.TrainingQueueManager(db, **gates) as manager:
        broken = submit(manager, "import not_a_module_of_ours")
        assert manager.wait(broken, 60) == "failed"
    found = asyncio.run(runyard.TrainingRecoveryService(db).analyze_failure(broken))
    assert found["failure_type"] == "environment"
    assert "not_a_module_of_ours" in found["diagnosis"]["root"]["text"]
