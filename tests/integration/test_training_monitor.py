"""TrainingMonitor: watching from inside another application; R23."""

import asyncio
import sys
import time

import pytest

import runyard
from runyard.stores.opening import open_store
from yards import SMALL

OPEN_GATES = {"gate_cpu": 100, "gate_memory": 100, "gate_disk": 100}
TRAINING = """
import time
for n in range(1, 41):
    print(f"Epoch {n}/40 - Loss: {1 / n:.4f}", flush=True)
time.sleep(600)
"""


async def until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not (found := await condition()):
        assert time.monotonic() < deadline, "not in time"
        await asyncio.sleep(0.05)
    return found


@pytest.fixture
def manager(tmp_path):
    with runyard.TrainingQueueManager(f"sqlite:///{tmp_path}/app.db", **OPEN_GATES) as made:
        yield made
        made.stop_processing(timeout=10)


def submit(manager, code=TRAINING, **fields):
    command = [sys.executable, "-c", code]
    return manager.submit_training_job(command=command, **{**SMALL, **fields})


@pytest.mark.parametrize("by", ["url", "store", "manager"])
def test_beside_a_manager(manager, tmp_path, by):
    """R23: the same database object or address, in one process."""
    db = {"url": f"sqlite:///{tmp_path}/app.db", "store": manager._store, "manager": manager}[by]

    async def watch():
        async with runyard.TrainingMonitor(db, monitoring_interval=1, history_size=50) as monitor:
            assert monitor.is_monitoring
            await monitor.start_monitoring()  # twice is no error
            job = submit(manager)

            async def read():
                status = await monitor.get_real_time_status(job)
                newest = status["metrics"].get("loss", {}).get("value")
                done = (status["progress"]["percent"], newest) == (100, 0.025)
                return status if done else None

            status = await until(read)
            assert (status["job_id"], status["status"]) == (job, "running")
            assert status["health"]["level"]
            [node] = status["system"]["nodes"]
            assert node["metrics"]["memory_percent"] > 0
            history = await monitor.get_history(job, ["loss"])
            assert history["loss"]["values"][-1] == 0.025
            assert "here" not in status["system"]
            with pytest.raises(runyard.JobNotFound):
                await monitor.get_real_time_status("job-nothing0000")
        assert not monitor.is_monitoring
        manager.cancel(job, force=True, wait=20)
        ended = await monitor.get_real_time_status(job)
        assert ended["status"] == "cancelled"

    asyncio.run(watch())


def test_the_interval_and_the_size_are_those_of_the_monitor(manager):
    async def watch():
        async with runyard.TrainingMonitor(manager, monitoring_interval=1, history_size=20):
            board = manager._yard.board
            [node] = [one.node_id for one in manager._yard.nodes()]
            before = len(board.node_window(node, "node.memory_percent"))

            async def measured():
                return len(board.node_window(node, "node.memory_percent")) >= before + 2

            await until(measured)

    asyncio.run(watch())


def test_a_restarted_manager_is_seen(manager, tmp_path):
    """The engine is another one after stop_processing."""

    async def watch():
        monitor = runyard.TrainingMonitor(f"sqlite:///{tmp_path}/app.db")
        await monitor.start_monitoring()
        await asyncio.to_thread(manager.stop_processing)
        await asyncio.to_thread(manager.start_processing)
        job = submit(manager, "print('done')")

        async def ended():
            return (await monitor.get_real_time_status(job))["status"] == "completed"

        await until(ended)
        await monitor.stop_monitoring()
        await monitor.stop_monitoring()

    asyncio.run(watch())


def test_beside_a_server_in_another_process(make_yard):
    """It reads what the server has recorded, and changes nothing."""
    yard = make_yard().start()
    job = yard.submit([sys.executable, "-c", TRAINING])

    async def watch():
        url = f"sqlite:///{yard.data}/runyard.db"
        async with runyard.TrainingMonitor(url, monitoring_interval=1) as monitor:

            async def read():
                status = await monitor.get_real_time_status(job)
                newest = status["metrics"].get("loss", {}).get("value")
                done = status["progress"]["percent"] >= 99.9 and newest == 0.025
                return status if done else None

            status = await until(read)
            assert status["system"]["here"]["node.memory_percent"] > 0
            assert len(status["system"]["nodes"]) == 1
            system = await monitor.get_system_status()
            assert system["counts"]["running"] == 1

    asyncio.run(watch())
    assert len(yard.ask("/nodes")) == 1
    assert yard.cancel(job).ok


def test_a_store_alone(tmp_path, monkeypatch):
    """Nobody works on it: what is kept can still be asked."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RUNYARD_DATA_DIR", str(tmp_path / "not there"))
    store = open_store(f"sqlite:///{tmp_path}/alone.db")

    async def watch():
        monitor = runyard.TrainingMonitor(store)
        await monitor.start_monitoring()
        assert (await monitor.get_system_status())["counts"]["running"] == 0
        with pytest.raises(runyard.JobNotFound):
            await monitor.get_real_time_status(1)
        await monitor.stop_monitoring()

    asyncio.run(watch())
    store.close()
    assert not (tmp_path / "not there").exists()
