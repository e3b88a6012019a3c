"""What is told of services: events, one alert while one does not answer, states for people."""

import time

import pytest

from runyard.domain.monitoring.alert import AlertFilter, AlertStatus
from runyard.executors.base import News, NewsKind
from yards import until

DB = {"name": "db", "command": "serve {port} {depth}", "health": "/h", "restart": "on-failure"}


@pytest.fixture
def running(engine):
    """A job with a service, and how its supervisor tells of that."""
    ref = engine.submit("true", services=[DB], params={"depth": 3})
    attempt_id = f"{ref}.1"
    until(lambda: attempt_id in engine.executor.launches)

    def tell(kind, **fields):
        told = {"kind": kind, "name": "db", "restarts": 0, **fields}
        engine.executor.tell(News(attempt_id, NewsKind.SERVICE, time.time(), service=told))

    return engine, ref, tell


def codes(engine, ref):
    return [stored.event.code for stored in engine.yard.events(ref)]


def alerts(engine, *statuses):
    return engine.yard.alert_desk.list(AlertFilter(statuses=statuses), 10, None).alerts


def test_the_executor_is_told_how_to_start_it(running):
    engine, ref, _ = running
    [launch] = engine.executor.launches[f"{ref}.1"].services
    assert launch.argv == ("/bin/sh", "-c", f"serve {launch.port} 3")
    assert launch.env == {"RUNYARD_SERVICE": "db", "RUNYARD_PORT": str(launch.port)}
    assert (launch.health, launch.restart) == ("/h", "on-failure")
    assert engine.yard.attempts(ref)[0].ports == (launch.port,)


def test_events(running):
    engine, ref, tell = running
    tell("service_ready")
    tell("service_exit", code=3, signal=None, restart_in_s=1.0)
    tell("service_of_a_later_release")
    until(lambda: "service_exited" in codes(engine, ref))
    [exited] = [s.event for s in engine.yard.events(ref) if s.event.code == "service_exited"]
    assert exited.params == {
        "service": "db",
        "restarts": 0,
        "code": 3,
        "signal": None,
        "restart_in_s": 1.0,
    }
    assert "service_ready" in codes(engine, ref)


def test_an_alert_while_it_does_not_answer(running):
    engine, _, tell = running
    tell("service_unhealthy", said="HTTP 503")
    [alert] = until(lambda: alerts(engine, AlertStatus.OPEN))
    assert (alert.code, alert.params) == (
        "service_unhealthy",
        {"service": "db", "said": "HTTP 503"},
    )
    tell("service_healthy")
    until(lambda: alerts(engine, AlertStatus.CLOSED))


def test_the_alert_is_over_with_the_job(running):
    engine, ref, tell = running
    tell("service_unhealthy", said="HTTP 503")
    until(lambda: alerts(engine, AlertStatus.OPEN))
    engine.executor.finish(f"{ref}.1", 0)
    until(lambda: alerts(engine, AlertStatus.CLOSED))
    tell("service_unhealthy", said="too late")
    engine.wait(ref, "completed")
    assert alerts(engine, AlertStatus.OPEN) == ()


def test_states_for_people(running):
    engine, ref, _ = running
    port = engine.executor.launches[f"{ref}.1"].services[0].port
    [before] = engine.yard.job(ref).services
    assert (before["state"], before["port"]) == ("starting", port)
    engine.executor.service_states[f"{ref}.1"] = [
        {"name": "db", "state": "restarting", "healthy": False, "restarts": 2, "pid": 7}
    ]
    [now] = engine.yard.job(ref).services
    assert (now["state"], now["restarts"], now["pid"]) == ("restarting", 2, 7)
    assert now["url"] == f"http://127.0.0.1:{port}"


def test_a_job_without_services_says_so(engine):
    ref = engine.submit("true")
    assert engine.yard.job(ref).services == ()
