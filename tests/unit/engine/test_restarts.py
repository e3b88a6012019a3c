"""What people decided, and what ran, is found again by the next server."""

from dataclasses import replace

import pytest

from engine_yard import ANN
from runyard.domain import errors
from runyard.domain.states import AttemptEnd
from scripted_machine import ScriptedMachine
from yards import until


def test_a_fenced_gpu_stays_fenced(make_engine):
    """R33: from the first placement on, which may come with an end nobody had heard of."""
    engine = make_engine(machine=ScriptedMachine(gpu_count=1))
    ended = engine.running()
    engine.yard.fence("0", "falls off the bus", ANN)
    ref = engine.submit(gpu_count=1)
    engine.close()
    engine.executor.finish(f"{ended}.1")
    engine.restart()
    engine.wait(ended, "completed")
    [gpu] = engine.yard.gpus()
    assert (gpu.fenced, gpu.fence_reason) == (True, "falls off the bus")
    engine.running()
    assert engine.attempts(ref) == []
    engine.yard.unfence("GPU-0", ANN)
    engine.wait(ref, "running")


def test_a_drained_node_stays_drained(make_engine):
    """Nothing is placed on it right after the start."""
    engine = make_engine(opened=False)
    waiting = engine.submit()
    engine.open()
    engine.wait(waiting, "running")
    engine.yard.drain("node-1", ANN)
    ref = engine.submit()
    engine.restart()
    assert engine.wait_reason(ref, "node_drained") == {}
    assert [node.drained for node in engine.yard.nodes()] == [True]
    engine.finish(waiting)
    engine.wait(waiting, "completed")
    assert engine.attempts(ref) == []
    engine.yard.undrain("node-1", ANN)
    engine.wait(ref, "running")


def test_a_database_restored_elsewhere(make_engine, tmp_path):
    """R42: its attempts ran under another server's data directory: they are settled as lost,
    and the queue goes on."""
    first = make_engine("first", max_concurrent=2)
    ran = first.running(max_retries=1)
    first.executor.losing = True
    placed = first.submit(max_retries=1)
    waiting = first.submit()
    assert first.status(placed) == "scheduled"
    (tmp_path / "second").mkdir()
    first.store.backup(str(tmp_path / "second" / "runyard.db"))
    second = make_engine("second", node_id="node-2", max_concurrent=2)
    until(lambda: len(second.attempts(ran)) == 2)
    until(lambda: len(second.attempts(placed)) == 2)
    assert [second.attempts(ran)[0].end, second.attempts(ran)[0].cause] == [
        AttemptEnd.LOST,
        "supervisor_lost",
    ]
    assert second.attempts(placed)[0].end is AttemptEnd.NEVER_STARTED
    for ref in (ran, placed):
        second.wait(ref, "running")
        assert second.attempts(ref)[1].node_id == "node-2"
        assert second.job(ref).charged == 0
        second.finish(ref)
    second.wait(waiting, "running")
    second.finish(waiting)
    second.wait(waiting, "completed")
    assert first.status(ran) == "running", "the first one's own are its own"


def test_a_restored_job_that_was_being_cancelled(make_engine, tmp_path):
    """R42: it cannot be running here, so it is cancelled."""
    first = make_engine("first")
    first.executor.stubborn = True
    ref = first.running()
    first.yard.cancel(ref, ANN)
    (tmp_path / "second").mkdir()
    first.store.backup(str(tmp_path / "second" / "runyard.db"))
    second = make_engine("second", node_id="node-2")
    second.wait(ref, "cancelled")
    assert second.reason(ref) == ("user_cancelled", {"by": "ann"})


def test_what_went_on_is_adopted(engine):
    """R42: one still runs, one ended while no server did, one was never handed over."""
    runs, ended = engine.running(), engine.running(max_retries=0)
    engine.executor.losing = True
    nowhere = engine.submit()
    engine.close()
    engine.executor.losing = False
    engine.executor.finish(f"{ended}.1", 7)
    engine.restart()
    assert engine.status(runs) == "running"
    assert engine.wait(ended, "failed").status == "failed"
    assert engine.attempts(ended)[0].exit_code == 7
    engine.wait(nowhere, "running")
    assert [a.end for a in engine.attempts(nowhere)] == [AttemptEnd.NEVER_STARTED, None]
    assert [len(engine.attempts(ref)) for ref in (runs, ended)] == [1, 1]


def test_an_executor_that_is_no_longer_set_up(engine):
    """R42: what it ran is left as it is, and keeps nobody from starting the server."""
    ref = engine.running()
    engine.executor.name = "elsewhere"
    engine.restart()
    other = engine.running()
    assert engine.attempts(other)[0].executor == "elsewhere"
    assert engine.status(ref) == "running"
    engine.executor.name = "local"
    engine.restart()
    engine.executor.finish(f"{ref}.1", 0)
    engine.wait(ref, "completed")


def test_several_nodes_of_one_name(make_engine):
    """Drain by name is refused and tells the ids, by which it works."""
    engine = make_engine(node_name="gpu-box")
    [own] = engine.yard.nodes()
    engine.store.write(lambda tx: tx.put_node(replace(own, node_id="node-2")))
    with pytest.raises(errors.Conflict, match="node-1, node-2") as caught:
        engine.yard.drain("gpu-box", ANN)
    assert caught.value.params["nodes"] == ["node-1", "node-2"]
    assert engine.yard.drain("node-2", ANN).drained
    assert {node.node_id: node.drained for node in engine.yard.nodes()} == {
        "node-1": False,
        "node-2": True,
    }
    engine.running()


def test_an_id_is_never_taken_for_a_name(engine):
    """Somebody may call a node by the id of another."""
    [own] = engine.yard.nodes()
    engine.store.write(lambda tx: tx.put_node(replace(own, node_id="node-2", name="node-1")))
    assert engine.yard.drain("node-1", ANN).node_id == "node-1"
