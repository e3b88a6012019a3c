"""A cancel always arrives, says who asked, and names what keeps the job from being gone."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from watched_store import WatchedStore

from engine_yard import ANN, BOB
from runyard.domain import errors
from runyard.engine.access.actor import Actor
from runyard.engine.cancel import cancel_reasons
from runyard.executors.base import News, NewsKind
from runyard.stores.base import JobFilter
from yards import until

FROZEN = {"pid": 4711, "state": "D", "name": "train", "where": "nfs_wait"}


def test_a_cancel_that_comes_second_looks_again(make_engine):
    """R13: on a shared store the job may move between the look and the write."""
    engine = make_engine(wrap=WatchedStore)
    ref = engine.running()
    stale = []

    def once(tx):
        if not stale and tx.job(ref).status == "cancelling":
            stale.append(True)
            raise errors.StaleWrite

    engine.store.after = once
    assert engine.yard.cancel(ref, ANN).status in ("cancelling", "cancelled")
    assert stale
    engine.wait(ref, "cancelled")
    assert len(engine.executor.stops[f"{ref}.1"]) == 1


@pytest.fixture
def paused_pair(postgres_url, make_engine):
    """Two servers of one database, of which only the second takes jobs, once there is a queue."""
    one = make_engine(database_url=postgres_url)
    two = make_engine(node_id="node-2", database_url=postgres_url)
    one.yard.stop_queue(ANN)
    one.yard.drain("node-1", ANN)
    return one, two


def meanwhile(happens):
    """Somebody for whom something happens between the look at a waiting job and the write."""

    class Slow(Actor):
        def must_own(self, job):
            if job.status == "pending":
                happens()

    return Slow(ANN.name, ANN.role, ANN.key_id)


def test_a_cancel_that_loses_to_a_start_on_another_server(paused_pair):
    """R13: placed by the other one while it is being cancelled as a waiting one."""
    one, two = paused_pair
    ref = one.submit()

    def is_placed():
        two.yard.start_queue(ANN)
        two.wait(ref, "running")

    assert one.yard.cancel(ref, meanwhile(is_placed)).status == "cancelling"
    two.wait(ref, "cancelled")
    assert two.executor.stops[f"{ref}.1"][0].requested_by == "ann"
    assert one.reason(ref) == ("user_cancelled", {"by": "ann"})


def test_a_hold_that_loses_to_a_start_on_another_server(paused_pair):
    """The answer tells what became of the job, not that somebody was quicker."""
    one, two = paused_pair
    ref = one.submit()

    def is_placed():
        two.yard.start_queue(ANN)
        two.wait(ref, "running")

    with pytest.raises(errors.Conflict, match="is running: only a waiting job can be held"):
        one.yard.hold(ref, meanwhile(is_placed))


def test_what_cannot_be_killed_is_named(engine):
    """R5: the job stays cancelling, its reason tells which processes and who had asked; when they
    are gone at last it is cancelled, by that person."""
    ref = engine.running(actor=BOB)
    engine.executor.stubborn = True
    engine.yard.cancel(ref, BOB)
    engine.executor.cannot_kill(f"{ref}.1", FROZEN)
    params = engine.wait_reason(ref, "stuck")
    assert params["processes"] == [FROZEN]
    assert params["by"] == "bob"
    assert engine.status(ref) == "cancelling"
    other = {**FROZEN, "pid": 4712}
    engine.executor.cannot_kill(f"{ref}.1", other)
    until(lambda: engine.reason(ref)[1].get("processes") == [other])
    assert engine.reason(ref)[1]["by"] == "bob"
    engine.finish(ref, None, signal=9, cause="cancelled")
    engine.wait(ref, "cancelled")
    assert engine.reason(ref) == ("user_cancelled", {"by": "bob"})


def test_what_cannot_be_killed_is_found_by_looking(engine):
    """R5: news may be lost; a restart in between loses nothing, either."""
    ref = engine.running()
    engine.executor.stubborn = True
    engine.yard.cancel(ref, ANN)
    engine.wait(ref, "cancelling")
    engine.close()
    engine.executor.cannot_kill(f"{ref}.1", FROZEN)
    engine.restart()
    assert engine.wait_reason(ref, "stuck")["processes"] == [FROZEN]
    engine.finish(ref, None, signal=9, cause="cancelled")
    engine.wait(ref, "cancelled")
    assert engine.reason(ref) == ("user_cancelled", {"by": "ann"})


def test_stuck_because_of_a_shutdown_ends_as_shutdown(engine):
    ref = engine.running()
    engine.executor.stubborn = True
    assert engine.yard.runtime.end_all(patience_s=0.1) is False
    engine.executor.cannot_kill(f"{ref}.1", FROZEN)
    assert engine.wait_reason(ref, "stuck")["cause"] == "shutdown"
    engine.finish(ref, None, signal=9, cause="cancelled")
    engine.wait(ref, "cancelled")
    assert engine.reason(ref)[0] == "shutdown"


def test_nothing_is_called_stuck_that_nobody_cancelled(engine):
    ref = engine.running()
    engine.executor.cannot_kill(f"{ref}.1", FROZEN)
    engine.finish(ref)
    assert engine.wait(ref, "completed").reason is None


def test_the_server_that_owns_it_is_silent(postgres_url, make_engine):
    """R5: cancelling, and the node is named, until that server is back; then by who asked."""
    one = make_engine(database_url=postgres_url)
    two = make_engine(node_id="node-2", database_url=postgres_url)
    one.yard.drain("node-1", ANN)
    ref = one.submit(actor=BOB)
    two.wait(ref, "running")
    two.close()
    [silent] = [node for node in one.yard.nodes() if node.node_id == "node-2"]
    one.store.write(
        lambda tx: tx.put_node(replace(silent, heartbeat_at=silent.heartbeat_at - 600))
    )
    one.yard.cancel(ref, BOB)
    code, params = one.reason(ref)
    assert (code, params["by"]) == ("waiting_for_step", "bob")
    one.look()
    params = one.wait_reason(ref, "node_unreachable")
    assert (params["node"], params["by"]) == ("node-2", "bob")
    two.restart()
    one.wait(ref, "cancelled")
    assert one.reason(ref) == ("user_cancelled", {"by": "bob"})
    assert two.executor.stops[f"{ref}.1"][0].requested_by == "bob"


def test_what_a_cancelling_job_waits_for(engine):
    """R5: for its step as long as it has grace, with what is left of it, never less than nothing;
    then for its last processes; at the end it says who asked."""
    ref = engine.running(grace_s=40, actor=BOB)
    engine.executor.stubborn = True
    engine.yard.cancel(ref, BOB)
    code, params = engine.reason(ref)
    assert (code, params["by"], params["cause"]) == ("waiting_for_step", "bob", "user")
    assert 30 < params["left_s"] <= 40
    assert params["until"] - params["requested_at"] == params["grace_s"] == 40
    engine.clock.ahead += 25
    assert 5 < engine.reason(ref)[1]["left_s"] <= 15
    engine.clock.ahead += 25
    code, params = engine.reason(ref)
    assert (code, params["left_s"], params["by"]) == ("waiting_for_processes", 0, "bob")
    engine.finish(ref, None, signal=9, cause="cancelled")
    engine.wait(ref, "cancelled")
    assert engine.reason(ref) == ("user_cancelled", {"by": "bob"})


def test_a_force_kill_leaves_no_grace(engine):
    """R7: of the one who asked first, as the reason tells."""
    ref = engine.running(grace_s=40, actor=BOB)
    engine.executor.stubborn = True
    engine.yard.cancel(ref, BOB)
    engine.yard.cancel(ref, ANN, force=True)
    code, params = engine.reason(ref)
    assert (code, params["left_s"], params["by"]) == ("waiting_for_processes", 0, "bob")
    [event] = [e.event for e in engine.yard.events(ref) if e.event.code == "job_force_killed"]
    assert (event.actor, event.params["grace_s"]) == ("ann", 0.0)
    other = engine.running(grace_s=40)
    engine.yard.cancel(other, ANN, force=True)
    assert engine.reason(other)[0] == "waiting_for_processes"


def test_lists_tell_it_as_well(engine):
    ref = engine.running(grace_s=40)
    engine.executor.stubborn = True
    engine.yard.cancel(ref, ANN)
    _, [view] = engine.yard.jobs(JobFilter(), 10, None)
    assert view.reason.code == "waiting_for_step"
    assert view.reason.params["left_s"] > 0
    [running] = engine.yard.queue_status().running
    assert running.reason.params["left_s"] > 0


@pytest.mark.parametrize(("code", "signal"), [(0, None), (1, None), (None, 9)])
def test_a_cancelled_job_is_never_failed_and_never_completed(engine, code, signal):
    """R3: however its process ends."""
    ref = engine.running(max_retries=3)
    engine.executor.stubborn = True
    engine.yard.cancel(ref, ANN)
    engine.finish(ref, code, signal=signal, cause="exited")
    job = engine.wait(ref, "cancelled", "failed", "completed", "retrying")
    assert job.status == "cancelled"
    assert engine.reason(ref) == ("user_cancelled", {"by": "ann"})
    receipt = engine.yard.receipt(ref)
    assert (receipt["requested_by"], receipt["stage"]) == ("ann", "running")


def test_cancel_while_scheduled(engine):
    """R1: the hand-over is under way; what arrives too late starts nothing."""
    engine.executor.gate.clear()
    with ThreadPoolExecutor(1) as client:
        asked = client.submit(engine.submit)
        ref = until(lambda: next(iter(engine.refs()), None))
        engine.wait(ref, "scheduled")
        engine.yard.cancel(ref, ANN)
        assert engine.status(ref) == "cancelling"
        engine.executor.gate.set()
        assert asked.result(60) == ref
    engine.wait(ref, "cancelled")
    assert engine.attempts(ref)[0].started_at is None
    assert engine.yard.receipt(ref)["stage"] == "starting"


def test_cancel_while_retrying(engine):
    """R1: nothing lives between two attempts."""
    ref = engine.running(max_retries=3)
    engine.finish(ref, 1)
    engine.wait(ref, "retrying")
    assert engine.yard.cancel(ref, ANN).status == "cancelled"
    assert engine.reason(ref) == ("user_cancelled", {"by": "ann"})


def test_cancel_while_finishing(engine):
    """R1: main has ended; the receipt tells where the request met it, also if news of the stage
    comes later."""
    ref = engine.running()
    name = f"{ref}.1"
    engine.executor.stubborn = True
    engine.executor.tell(News(name, NewsKind.FINISHING, engine.clock()))
    until(lambda: engine.job(ref).stage == "finishing")
    assert engine.status(ref) == "running"
    engine.yard.cancel(ref, ANN)
    engine.finish(ref, 0, cause="exited")
    engine.wait(ref, "cancelled")
    assert engine.yard.receipt(ref)["stage"] == "finishing"
    other = engine.running()
    engine.yard.cancel(other, ANN)
    engine.executor.tell(News(f"{other}.1", NewsKind.FINISHING, engine.clock()))
    engine.finish(other, 0, cause="exited")
    engine.wait(other, "cancelled")
    assert engine.yard.receipt(other)["stage"] == "running"


def test_its_server_is_back(postgres_url, make_engine):
    """R5: the reason goes back to what is waited for there."""
    one = make_engine(database_url=postgres_url)
    two = make_engine(node_id="node-2", database_url=postgres_url)
    one.yard.drain("node-1", ANN)
    ref = one.submit(grace_s=600)
    two.wait(ref, "running")
    two.executor.stubborn = True
    one.yard.cancel(ref, ANN)
    until(lambda: two.executor.stops.get(f"{ref}.1"))
    one.store.write(lambda tx: cancel_reasons.say_unreachable(tx, one.job(ref).id, "node-2"))
    assert one.reason(ref)[0] == "node_unreachable"
    assert one.reason(ref)[1]["left_s"] > 0
    two.look()
    assert one.wait_reason(ref, "waiting_for_step")["by"] == "ann"
