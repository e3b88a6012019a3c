"""Leases are renewed and alerts are read over HTTP."""

from served import until

from runyard.domain.monitoring.alert import AlertLevel, NewAlert


def submit(served, key=None, **fields):
    answer = served.api(
        "POST", "/jobs", {"command": "true", "gpu_count": 0, "cpu_cores": 0.01, **fields}, key=key
    )
    assert answer.status == 201, answer.data
    return answer.body["job_id"]


def opened(served, key, ref=None, **fields):
    job_id = served.yard.job(ref).job.id if ref else None
    level = fields.pop("level", AlertLevel.CRITICAL)
    found = NewAlert(key, level, "cancel_stale", job_id=job_id, **fields)
    return served.yard.alert_desk.open(found).id


def test_renewing_a_lease(served):
    """R56"""
    ref = submit(served, lease_s=60, hold=True)
    answer = served.api("POST", f"/jobs/{ref}/lease")
    assert answer.status == 200
    assert (answer.body["job_id"], answer.body["lease_s"]) == (ref, 60.0)
    first = answer.body["expires_at"]
    assert served.api("POST", f"/jobs/{ref}/lease").body["expires_at"] >= first
    number = served.yard.job(ref).job.id
    assert served.api("POST", f"/jobs/{number}/lease").status == 200


def test_leases_that_cannot_be_renewed(served):
    without = submit(served, hold=True)
    answer = served.api("POST", f"/jobs/{without}/lease")
    assert (answer.status, answer.code) == (409, "no_lease")
    ref = submit(served, key=served.user, lease_s=60, hold=True)
    assert served.api("POST", f"/jobs/{ref}/lease", key=served.user).status == 200
    assert served.api("POST", f"/jobs/{ref}/lease", key=served.other).status == 403
    assert served.api("POST", f"/jobs/{ref}/lease", key=served.viewer).status == 403
    served.api("POST", f"/jobs/{ref}/cancel")
    answer = served.api("POST", f"/jobs/{ref}/lease")
    assert (answer.status, answer.code) == (409, "already_ended")
    assert served.api("POST", "/jobs/job-nothing1/lease").status == 404


def test_a_cancelling_job_says_what_it_waits_for(served):
    """R5: in the answer of the cancel, of the job, and of the list."""
    served.executor.stubborn = True
    ref = submit(served, grace_s=30)
    until(lambda: served.api("GET", f"/jobs/{ref}").body["status"] == "running")
    told = [served.api("POST", f"/jobs/{ref}/cancel").body["reason"]]
    told.append(served.api("GET", f"/jobs/{ref}").body["reason"])
    told.append(served.api("GET", "/jobs?status=cancelling").body[0]["reason"])
    for reason in told:
        assert reason["code"] == "waiting_for_step"
        assert 0 < reason["params"]["left_s"] <= 30
        assert (reason["params"]["by"], reason["params"]["cause"]) == ("admin", "user")
    served.executor.finish(f"{ref}.1", 0)
    until(lambda: served.api("GET", f"/jobs/{ref}").body["status"] == "cancelled")


def test_alerts_are_listed_acknowledged_and_closed(served):
    ref = submit(served, key=served.user, hold=True)
    mine = opened(served, "a", ref, params={"seconds": 300}, evidence={"x": 1})
    general = opened(served, "b", level=AlertLevel.WARNING)
    [shown] = served.api("GET", f"/alerts?job={ref}", key=served.viewer).body
    assert (shown["id"], shown["job_id"], shown["status"]) == (mine, ref, "open")
    assert (shown["level"], shown["code"], shown["times"]) == ("critical", "cancel_stale", 1)
    assert (shown["params"], shown["evidence"]) == ({"seconds": 300}, {"x": 1})
    ids = [alert["id"] for alert in served.api("GET", "/alerts?level=warning").body]
    assert ids == [general]
    path = f"/alerts/{mine}/acknowledge"
    assert served.api("POST", path, key=served.other).status == 403
    seen = served.api("POST", path, key=served.user).body
    assert (seen["status"], seen["acknowledged_by"]) == ("acknowledged", "ann")
    assert served.api("POST", f"/alerts/{general}/close", key=served.user).status == 403
    closed = served.api("POST", f"/alerts/{general}/close").body
    assert closed["status"] == "closed"
    assert closed["closed_at"] is not None
    assert served.api("POST", f"/alerts/{general}/acknowledge").status == 409
    left = served.api("GET", "/alerts?status=open,acknowledged").body
    assert [alert["id"] for alert in left] == [mine]
    assert served.api("GET", f"/alerts/{mine}").body["id"] == mine
    first = served.api("GET", "/alerts?limit=1")
    assert first.headers["X-Total-Count"] == "2"
    cursor = first.headers["X-Next-Cursor"]
    rest = served.api("GET", f"/alerts?limit=1&cursor={cursor}")
    assert {first.body[0]["id"], rest.body[0]["id"]} == {mine, general}


def test_what_is_wrong_is_told(served):
    assert served.api("GET", "/alerts?status=shut").status == 422
    assert served.api("GET", "/alerts?level=loud").status == 422
    assert served.api("GET", "/alerts?job=job-nothing1").status == 404
    assert served.api("GET", "/alerts?cursor=x").status == 400
    assert served.api("GET", "/alerts/4711").status == 404
    assert served.api("POST", "/alerts/4711/close").status == 404
    assert served.api("GET", "/alerts", key="").status == 401
