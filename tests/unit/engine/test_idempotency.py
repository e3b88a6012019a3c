"""A request repeated with its key is the same request, or is refused with a clear word."""

import pytest

from engine_yard import ANN, BOB
from runyard.domain import errors
from runyard.engine.submit.submitting import Idempotency

DELETED = "Idempotency-Key were deleted"
ONE = Idempotency("nightly", "digest of the body")
BATCH = [{"command": "true", "hold": True}] * 3


def refs(jobs):
    return [job.ref for job in jobs]


def test_the_same_again_is_the_same_jobs(engine):
    """Nothing is started twice, also by the next server."""
    first = refs(engine.submit_all(BATCH, idempotency=ONE))
    assert refs(engine.submit_all(BATCH, idempotency=ONE)) == first
    engine.restart()
    assert refs(engine.submit_all(BATCH, idempotency=ONE)) == first
    assert sorted(engine.refs()) == sorted(first)


def test_the_same_while_it_runs_and_when_it_has_ended(engine):
    """The answer is the job as it is by then."""
    ref = engine.submit(idempotency=ONE)
    engine.wait(ref, "running")
    assert engine.submit(idempotency=ONE) == ref
    engine.finish(ref)
    engine.wait(ref, "completed")
    [job] = engine.submit_all([{"command": "true"}], idempotency=ONE)
    assert (job.ref, job.status) == (ref, "completed")
    assert len(engine.attempts(ref)) == 1


def test_another_body_is_refused(engine):
    engine.submit(hold=True, idempotency=ONE)
    other = Idempotency(ONE.key, "digest of another body")
    with pytest.raises(errors.IdempotencyConflict) as caught:
        engine.submit("false", hold=True, idempotency=other)
    assert caught.value.status == 409
    assert len(engine.refs()) == 1


def test_each_api_key_has_its_own(engine):
    """What somebody else calls by the same name is another request."""
    anns = engine.submit(hold=True, actor=ANN, idempotency=ONE)
    bobs = engine.submit(hold=True, actor=BOB, idempotency=ONE)
    assert anns != bobs
    assert engine.job(bobs).owner == "bob"
    assert engine.submit(hold=True, actor=BOB, idempotency=ONE) == bobs


def test_after_the_job_was_deleted(engine):
    """Neither a new job nor an empty answer."""
    ref = engine.submit(hold=True, idempotency=ONE)
    engine.yard.cancel(ref, ANN)
    engine.yard.delete(ref, ANN)
    with pytest.raises(errors.Conflict, match=DELETED) as caught:
        engine.submit(hold=True, idempotency=ONE)
    assert (caught.value.status, caught.value.params["jobs"]) == (409, [ref])
    assert engine.refs() == []
    engine.submit(hold=True, idempotency=Idempotency("another", ONE.digest))


def test_after_part_of_a_batch_was_deleted(engine):
    """Half an answer would look like a whole one."""
    first = refs(engine.submit_all(BATCH, idempotency=ONE))
    engine.yard.cancel(first[1], ANN)
    engine.yard.delete(first[1], ANN)
    with pytest.raises(errors.Conflict, match=DELETED) as caught:
        engine.submit_all(BATCH, idempotency=ONE)
    assert caught.value.params["jobs"] == first
    assert sorted(engine.refs()) == sorted([first[0], first[2]])


def test_a_refused_batch_leaves_no_key_behind(engine):
    """What was not accepted can be sent again."""
    unknown = [{"command": "true", "depends_on": ["job-2222222222222222"]}]
    with pytest.raises(errors.UnknownDependency):
        engine.submit_all(unknown, idempotency=ONE)
    engine.submit_all(BATCH, idempotency=ONE)
