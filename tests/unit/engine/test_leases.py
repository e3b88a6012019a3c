"""A job whose client stops renewing its lease is cancelled, or kept, by whichever server looks."""

import time

import pytest

from engine_yard import ANN, BOB
from runyard.domain import errors
from runyard.stores.base import Lease
from yards import until

LONG = 600


def expires_at(engine, ref):
    with engine.store.read() as reader:
        lease = reader.lease(engine.job(ref).id)
    return None if lease is None else lease.expires_at


def run_out(engine, ref, in_s=-1.0):
    """As if its client had been silent for so long."""
    lease = Lease(engine.job(ref).id, time.time() + in_s)
    engine.store.write(lambda tx: tx.put_lease(lease))
    engine.yard.runtime.leased()


def test_a_running_job_is_cancelled(engine):
    """R56: with the reason, the events and the receipt that say why."""
    ref = engine.running(lease_s=LONG)
    run_out(engine, ref, in_s=0.2)  # nothing but the clock tells that it has
    engine.wait(ref, "cancelled")
    assert engine.reason(ref) == ("lease_lost", {"lease_s": LONG})
    [stop] = engine.executor.stops[f"{ref}.1"]
    assert (stop.cause, stop.requested_by) == ("lease", "lease")
    told = engine.events(ref)
    assert told.index("lease_lost") < told.index("job_cancelling") < told.index("job_cancelled")
    assert engine.yard.receipt(ref)["requested_by"] == "lease"
    assert expires_at(engine, ref) is None


def test_while_it_is_cancelling_the_cause_is_told(engine):
    engine.executor.stubborn = True
    ref = engine.running(lease_s=LONG)
    run_out(engine, ref)
    engine.wait(ref, "cancelling")
    code, params = engine.reason(ref)
    assert (code, params["by"], params["cause"]) == ("waiting_for_step", "lease", "lease")
    engine.finish(ref, None, signal=9, cause="cancelled")
    engine.wait(ref, "cancelled")
    assert engine.reason(ref) == ("lease_lost", {"lease_s": LONG})


def test_a_waiting_job_is_covered_too(engine):
    """R56: before it held anything; what depends on it does not wait for ever."""
    ref = engine.submit(lease_s=0.2, hold=True)
    other = engine.submit(depends_on=[ref])
    engine.wait(ref, "cancelled")
    assert engine.reason(ref) == ("lease_lost", {"lease_s": 0.2})
    engine.wait(other, "cancelled")
    receipt = engine.yard.receipt(ref)
    assert (receipt["requested_by"], receipt["proof"]) == ("lease", "never_started")
    assert expires_at(engine, ref) is None


def test_a_job_may_be_kept(engine):
    """R56: it runs on, without a lease, and the loss is told once."""
    ref = engine.running(lease_s=LONG, on_lease_lost="keep")
    run_out(engine, ref)
    until(lambda: "lease_lost" in engine.events(ref))
    assert expires_at(engine, ref) is None
    assert engine.status(ref) == "running"
    engine.finish(ref)
    engine.wait(ref, "completed")
    assert engine.events(ref).count("lease_lost") == 1


def test_renewing_keeps_it(engine):
    ref = engine.running(lease_s=LONG)
    lease = Lease(engine.job(ref).id, time.time() + 5)
    engine.store.write(lambda tx: tx.put_lease(lease))
    job, renewed = engine.yard.renew(ref, ANN)
    assert job.ref == ref
    assert renewed.expires_at > lease.expires_at
    assert expires_at(engine, ref) == pytest.approx(renewed.expires_at)


def test_renewing_what_cannot_be_renewed(engine):
    ref = engine.running()
    with pytest.raises(errors.NoLease):
        engine.yard.renew(ref, ANN)
    with pytest.raises(errors.JobNotFound):
        engine.yard.renew("job-unknown", ANN)
    mine = engine.running(lease_s=LONG)
    with pytest.raises(errors.Forbidden):
        engine.yard.renew(mine, BOB)
    engine.finish(mine)
    engine.wait(mine, "completed")
    with pytest.raises(errors.AlreadyEnded):
        engine.yard.renew(mine, ANN)
    assert expires_at(engine, mine) is None


def test_a_client_that_comes_back_gets_its_lease_back(engine):
    ref = engine.running(lease_s=LONG, on_lease_lost="keep")
    run_out(engine, ref)
    until(lambda: expires_at(engine, ref) is None)
    engine.yard.renew(ref, ANN)
    assert expires_at(engine, ref) is not None


def test_at_a_start_every_lease_begins_again(engine):
    """R56: nobody could renew while no server ran."""
    ref = engine.running(lease_s=LONG)
    job_id = engine.job(ref).id
    engine.store.write(lambda tx: tx.put_lease(Lease(job_id, time.time() + 60)))
    engine.close()
    engine.restart()
    assert expires_at(engine, ref) > time.time() + LONG - 60
    assert engine.status(ref) == "running"


def test_one_that_ran_out_while_no_server_ran_is_not_lost(engine):
    ref = engine.running(lease_s=LONG)
    lease = Lease(engine.job(ref).id, time.time() - 1)
    engine.close()
    engine._compose()
    engine.store.write(lambda tx: tx.put_lease(lease))
    engine.open()
    assert engine.status(ref) == "running"
    assert expires_at(engine, ref) > time.time() + LONG - 60
    run_out(engine, ref)
    engine.wait(ref, "cancelled")


def test_a_renewal_that_comes_first_wins(engine):
    """The look saw it expired, the write does not."""
    ref = engine.running(lease_s=LONG)
    leases = engine.yard.runtime.leases
    job = engine.job(ref)
    run_out_at = time.time() - 1
    engine.yard.renew(ref, ANN)
    leases._lose(job, run_out_at)
    assert engine.status(ref) == "running"
    assert "lease_lost" not in engine.events(ref)


def test_a_cancelled_or_ended_job_is_left_alone(engine):
    engine.executor.stubborn = True
    ref = engine.running(lease_s=LONG)
    engine.yard.cancel(ref, ANN)
    run_out(engine, ref)
    until(lambda: expires_at(engine, ref) is None)
    assert "lease_lost" not in engine.events(ref)
    engine.finish(ref, None, signal=15, cause="cancelled")
    engine.wait(ref, "cancelled")
    assert engine.reason(ref) == ("user_cancelled", {"by": "ann"})


def test_a_server_that_slept_gives_its_clients_time(engine):
    """A suspended laptop: they could not renew, so nothing is lost."""
    ref = engine.running(lease_s=LONG)
    leases = engine.yard.runtime.leases
    leases._planned = time.time() - 3600
    engine.store.write(lambda tx: tx.put_lease(Lease(engine.job(ref).id, time.time() - 3600)))
    leases.expire()
    assert engine.status(ref) == "running"
    assert expires_at(engine, ref) > time.time()


def test_a_retry_by_hand_has_no_client_and_no_lease(engine):
    ref = engine.running(lease_s=LONG)
    run_out(engine, ref)
    engine.wait(ref, "cancelled")
    engine.yard.retry(ref, ANN)
    engine.wait(ref, "running")
    assert expires_at(engine, ref) is None


def test_any_server_of_a_shared_store_may_end_it_and_one_does(postgres_url, make_engine):
    """R56: the server that took the job is gone; another ends it."""
    one = make_engine(database_url=postgres_url)
    two = make_engine(node_id="node-2", database_url=postgres_url)
    one.yard.drain("node-1", ANN)
    ref = one.submit(lease_s=LONG)
    two.wait(ref, "running")
    lease = Lease(one.job(ref).id, one.store.now() - 1)
    one.store.write(lambda tx: tx.put_lease(lease))
    one.yard.runtime.leased()
    two.yard.runtime.leased()
    two.wait(ref, "cancelled")
    assert two.events(ref).count("lease_lost") == 1
    assert len(two.executor.stops[f"{ref}.1"]) == 1
