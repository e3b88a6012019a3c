"""Whatever ends a job, what has to be told of it is written in the same transaction, and once."""

import pytest
from watched_store import WatchedStore

from engine_yard import ANN, BOB
from runyard.domain import errors
from runyard.domain.job import NotifyTarget
from runyard.domain.monitoring.alert import AlertLevel, NewAlert
from runyard.domain.notifications import DeliveryFilter, NewWorkspaceTarget
from yards import until

URL = "http://hook.example/x"
NOTIFY = [{"url": URL, "secret": "s3cret"}]
TEAM = NewWorkspaceTarget("team", NotifyTarget("webhook", "http://team.example/"))
TROUBLE = NewAlert("disk:node-1", AlertLevel.WARNING, "disk_full", node_id="node-1")


def told(engine, **chosen):
    """Oldest first."""
    with engine.store.read() as reader:
        return list(reversed(reader.deliveries(DeliveryFilter(**chosen), limit=1000).deliveries))


def events(engine):
    return [(one.event, one.body["job"]["job_id"]) for one in told(engine)]


def test_a_completed_job_is_told(engine):
    """R38"""
    ref = engine.running(notify=NOTIFY, name="train")
    engine.finish(ref)
    engine.wait(ref, "completed")
    [one] = told(engine)
    body = dict(one.body)
    job = body.pop("job")
    assert body == {"delivery": one.delivery_id, "event": "completed", "at": job["ended_at"]}
    assert one.job_ref == ref
    assert (one.recipient.type, one.recipient.url, one.recipient.secret) == (
        "webhook",
        URL,
        "s3cret",
    )
    assert job.pop("started_at")
    assert job.pop("ended_at")
    assert job == {
        "job_id": ref,
        "name": "train",
        "status": "completed",
        "reason": None,
        "owner": "ann",
        "exit_code": 0,
        "url": f"http://127.0.0.1:8765/jobs/{ref}",
    }
    assert "s3cret" not in str(body) + str(job)


def test_a_failed_job_says_why(engine):
    """R38"""
    ref = engine.running(notify=NOTIFY)
    engine.finish(ref, 3)
    engine.wait(ref, "failed")
    [one] = told(engine)
    assert one.body["job"]["exit_code"] == 3
    assert one.body["job"]["reason"] == {"code": "exit_code", "params": {"code": 3}}


def test_a_job_that_is_tried_again_has_not_ended(engine):
    ref = engine.running(notify=NOTIFY, max_retries=2)
    engine.finish(ref, 3)
    engine.wait(ref, "retrying")
    assert told(engine) == []


def test_a_cancelled_running_job_is_told_when_it_is_gone(engine):
    ref = engine.running(notify=NOTIFY)
    engine.yard.cancel(ref, ANN)
    engine.wait(ref, "cancelled")
    assert events(engine) == [("cancelled", ref)]


def test_a_job_cancelled_while_it_waits_is_told(engine):
    ref = engine.submit(notify=NOTIFY, hold=True)
    engine.yard.cancel(ref, ANN)
    assert events(engine) == [("cancelled", ref)]
    [one] = told(engine)
    assert one.body["job"]["reason"]["code"] == "user_cancelled"
    assert one.body["job"]["exit_code"] is None


def test_those_that_depended_on_it_are_told_too(engine):
    first = engine.running()
    second = engine.submit(notify=NOTIFY, depends_on=[first])
    third = engine.submit(notify=NOTIFY, depends_on=[second])
    engine.finish(first, 1)
    engine.wait(third, "cancelled")
    assert events(engine) == [("cancelled", second), ("cancelled", third)]


def test_a_job_that_can_never_start_is_told_at_once(engine):
    first = engine.submit(hold=True)
    engine.yard.cancel(first, ANN)
    second = engine.submit(notify=NOTIFY, depends_on=[first])
    assert events(engine) == [("cancelled", second)]


def test_an_end_while_no_server_ran_is_told_after_the_restart(engine):
    ref = engine.running(notify=NOTIFY)
    engine.close()
    engine.executor.finish(f"{ref}.1", 0)
    engine.restart()
    engine.wait(ref, "completed")
    assert events(engine) == [("completed", ref)]
    engine.restart()
    assert len(told(engine)) == 1


def test_a_second_run_is_a_second_end(engine):
    ref = engine.running(notify=NOTIFY)
    engine.finish(ref, 1)
    engine.wait(ref, "failed")
    engine.yard.retry(ref, ANN)
    engine.wait(ref, "running")
    engine.finish(ref)
    engine.wait(ref, "completed")
    assert events(engine) == [("failed", ref), ("completed", ref)]
    engine.yard.stop_queue(ANN)
    engine.yard.retry(ref, ANN)
    engine.yard.cancel(ref, ANN)
    assert told(engine)[-1].body["job"]["exit_code"] is None, "not that of an earlier run"


def test_what_was_rolled_back_is_not_told(make_engine):
    engine = make_engine(wrap=WatchedStore)
    ref = engine.submit(notify=NOTIFY, hold=True)

    def broken(_):
        raise OSError("no room")

    engine.store.after = broken
    with pytest.raises(OSError, match="no room"):
        engine.yard.cancel(ref, ANN)
    engine.store.after = lambda _: None
    assert (engine.status(ref), told(engine)) == ("pending", [])


def test_only_what_was_asked_for_is_told(engine):
    notify = [{"url": URL, "events": ["failed"]}, {"url": URL + "2", "events": ["completed"]}]
    ref = engine.running(notify=notify)
    engine.finish(ref)
    engine.wait(ref, "completed")
    assert [one.recipient.url for one in told(engine)] == [URL + "2"]


def test_the_same_address_is_told_once(engine):
    """Named twice in the job, and by the workspace as well."""
    desk = engine.yard.notifications
    desk.add(NewWorkspaceTarget("same", NotifyTarget("webhook", URL)), ANN)
    desk.add(TEAM, ANN)
    ref = engine.running(notify=[*NOTIFY, {"url": URL, "events": ["completed", "alert"]}])
    engine.finish(ref)
    engine.wait(ref, "completed")
    assert sorted(one.recipient.url or one.recipient.name for one in told(engine)) == [URL, "team"]


def test_a_target_of_the_workspace_is_told_of_everybodys_jobs(engine):
    target = engine.yard.notifications.add(TEAM, ANN)
    ref = engine.running(actor=BOB)
    engine.finish(ref)
    engine.wait(ref, "completed")
    [one] = told(engine)
    assert (one.recipient.workspace_target, one.recipient.name) == (target.id, "team")
    assert one.recipient.url == "", "its address is looked up when it is sent"


def test_a_change_of_targets_counts_from_the_next_end(engine):
    desk = engine.yard.notifications

    def end():
        ref = engine.submit(hold=True)
        engine.yard.cancel(ref, ANN)

    end()
    target = desk.add(TEAM, ANN)
    end()
    assert len(told(engine)) == 1
    off = NewWorkspaceTarget("team", TEAM.where, enabled=False)
    desk.change(target.id, off, ANN)
    end()
    assert len(told(engine)) == 1
    desk.change(target.id, TEAM, ANN)
    end()
    assert len(told(engine)) == 2
    desk.remove(target.id, ANN)
    end()
    assert len(told(engine)) == 2


def test_nobody_to_tell_writes_nothing_and_wakes_nobody(engine):
    woken = []
    engine.yard.outbox.wake = lambda: woken.append(1)
    ref = engine.running()
    engine.finish(ref)
    engine.wait(ref, "completed")
    assert (told(engine), woken) == ([], [])


def test_whoever_sends_is_woken_after_the_commit(engine):
    seen = []
    engine.yard.outbox.wake = lambda: seen.append(len(told(engine)))
    ref = engine.submit(notify=NOTIFY, hold=True)
    engine.yard.cancel(ref, ANN)
    until(lambda: seen)
    assert seen[0] == 1


# alerts


def alert_on(engine, ref):
    job = engine.job(ref)
    return NewAlert(f"slow:{ref}", AlertLevel.ERROR, "slow_down", {"by": 3}, job_id=job.id)


def test_an_alert_of_a_job_is_told_to_those_who_want_alerts(engine):
    """R16"""
    ref = engine.running(notify=[{"url": URL, "events": ["alert"]}, {"url": URL + "2"}])
    alert = engine.yard.alert_desk.open(alert_on(engine, ref))
    [one] = told(engine)
    assert (one.event, one.recipient.url, one.job_ref) == ("alert", URL, ref)
    assert one.body["alert"]["code"] == "slow_down"
    assert one.body["alert"]["level"] == "error"
    assert one.body["alert"]["params"] == {"by": 3}
    assert one.body["job"]["job_id"] == ref
    kept = engine.yard.alert_desk.get(alert.id)
    assert kept.actions_taken[0]["action"] == "notified"


def test_an_alert_without_a_job_is_told_to_the_workspace(engine):
    """R16"""
    where = NotifyTarget("webhook", "http://team.example/", None, ("alert",))
    engine.yard.notifications.add(NewWorkspaceTarget("team", where), ANN)
    engine.yard.alert_desk.open(TROUBLE)
    engine.yard.alert_desk.open(TROUBLE)
    [one] = told(engine)
    assert one.body["job"] is None
    assert one.body["alert"]["node_id"] == "node-1"


def test_an_alert_that_comes_and_goes_is_told_once_in_a_while(make_engine):
    engine = make_engine(notify_quiet_s=300.0)
    where = NotifyTarget("webhook", "http://team.example/", None, ("alert",))
    engine.yard.notifications.add(NewWorkspaceTarget("team", where), ANN)
    desk = engine.yard.alert_desk
    for _ in range(4):
        desk.open(TROUBLE)
        desk.close(TROUBLE.key)
        engine.clock.ahead += 90
    assert len(told(engine)) == 1
    desk.open(TROUBLE)
    assert len(told(engine)) == 2, "six minutes after it was told"
    desk.open(NewAlert("disk:node-2", AlertLevel.WARNING, "disk_full", node_id="node-2"))
    assert len(told(engine)) == 3, "another trouble is another"


def test_an_alert_nobody_was_told_of_silences_nobody(engine):
    desk = engine.yard.alert_desk
    desk.open(TROUBLE)
    desk.close(TROUBLE.key)
    where = NotifyTarget("webhook", "http://team.example/", None, ("alert",))
    engine.yard.notifications.add(NewWorkspaceTarget("team", where), ANN)
    desk.open(TROUBLE)
    assert len(told(engine)) == 1


def test_a_repaired_job_can_be_told(engine):
    ref = engine.running(notify=[{"url": URL, "events": ["repaired"]}])
    job = engine.job(ref)
    engine.store.write(lambda tx: engine.yard.outbox.repaired(tx, job))
    [one] = told(engine)
    assert (one.event, one.body["job"]["job_id"]) == ("repaired", ref)


# people


def test_only_admins_decide_who_is_told_of_everybodys_jobs(engine):
    desk = engine.yard.notifications
    target = desk.add(TEAM, ANN)
    for forbidden in (
        lambda: desk.targets(BOB),
        lambda: desk.add(TEAM, BOB),
        lambda: desk.change(target.id, TEAM, BOB),
        lambda: desk.remove(target.id, BOB),
        lambda: desk.test(target.id, BOB),
    ):
        with pytest.raises(errors.Forbidden):
            forbidden()


def test_names_are_given_once(engine):
    desk = engine.yard.notifications
    desk.add(TEAM, ANN)
    other = desk.add(NewWorkspaceTarget("other", TEAM.where), ANN)
    with pytest.raises(errors.Conflict):
        desk.add(TEAM, ANN)
    with pytest.raises(errors.Conflict):
        desk.change(other.id, TEAM, ANN)
    desk.change(other.id, NewWorkspaceTarget("other", TEAM.where, False), ANN)
    with pytest.raises(errors.NotFound):
        desk.remove(99, ANN)


def test_others_see_what_was_told_of_their_own_jobs(engine):
    engine.yard.notifications.add(TEAM, ANN)
    for actor in (ANN, BOB):
        ref = engine.submit(actor=actor, hold=True)
        engine.yard.cancel(ref, actor)
    desk = engine.yard.notifications
    assert desk.deliveries(DeliveryFilter(), ANN, 10, None).total == 2
    page = desk.deliveries(DeliveryFilter(), BOB, 10, None)
    assert [one.body["job"]["owner"] for one in page.deliveries] == ["bob"]
