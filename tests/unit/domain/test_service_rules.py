"""Ports and environment of a job's services, and what their failure means."""

from dataclasses import replace

import pytest

from runyard.domain import errors, job_services, reasons
from runyard.domain.ending import judge
from runyard.domain.job import JobSpec, Service
from runyard.domain.job_environment import Facts, build, of_service
from runyard.domain.resources import Request
from runyard.domain.retrying import GiveUp, Retry, decide
from runyard.domain.states import AttemptEnd, JobStatus

AUTO = Service("my-db", "db")
FIXED = Service("api", "serve", port=9000)
LAST = Service("reward", "serve", env_vars={"OWN": "mine", "CUDA_VISIBLE_DEVICES": "7"})
GRANTED = (38000, 38001, 38002)


def facts(**spec):
    request = Request(1000, 1024, port_count=len(GRANTED))
    return Facts(
        base={"PATH": "/bin"},
        spec=JobSpec("job", "true", request=request, services=(AUTO, FIXED, LAST), **spec),
        job_ref="job-a",
        attempt_id="job-a.1",
        attempt_number=1,
        run_dir="/run",
        output_dir="/out",
        checkpoint_dir="/out/checkpoints",
        cpu_milli=1000,
        gpu_uuids=("GPU-1",),
        ports=GRANTED,
    )


def test_the_job_s_own_ports_come_first():
    spec = facts().spec
    assert job_services.own_port_count(spec) == 1
    assert job_services.own_ports(spec, GRANTED) == (38000,)
    assert job_services.ports(spec, GRANTED) == {"my-db": 38001, "api": 9000, "reward": 38002}


def test_a_job_without_services_keeps_all_its_ports():
    spec = JobSpec("job", "true", request=Request(1, 1, port_count=3))
    assert job_services.own_port_count(spec) == 3
    assert job_services.own_ports(spec, GRANTED) == GRANTED
    assert job_services.ports(spec, GRANTED) == {}


def test_the_job_knows_every_service():
    found = build(facts(port_names=("board",)))
    assert {name: found[name] for name in found if name.startswith("RUNYARD_PORT")} == {
        "RUNYARD_PORT_0": "38000",
        "RUNYARD_PORT_BOARD": "38000",
        "RUNYARD_PORT_MY_DB": "38001",
        "RUNYARD_PORT_API": "9000",
        "RUNYARD_PORT_REWARD": "38002",
    }
    assert found["RUNYARD_SERVICE_MY_DB_URL"] == "http://127.0.0.1:38001"
    assert found["RUNYARD_SERVICE_API_URL"] == "http://127.0.0.1:9000"
    assert "RUNYARD_PORT" not in found


def test_a_service_gets_its_own_on_top_and_no_other_gpu():
    assert of_service(facts(), LAST) == {
        "OWN": "mine",
        "RUNYARD_SERVICE": "reward",
        "RUNYARD_PORT": "38002",
    }
    assert of_service(facts(), FIXED)["RUNYARD_PORT"] == "9000"


def test_a_fixed_port_of_the_pool_is_refused():
    spec = facts().spec
    job_services.refuse_ports_of_the_pool(spec, (38000, 38199))
    with pytest.raises(errors.InvalidJob) as caught:
        job_services.refuse_ports_of_the_pool(spec, (9000, 9001))
    [field] = caught.value.params["fields"]
    assert (field["field"], field["code"]) == ("services[1].port", "port_of_the_pool")


@pytest.mark.parametrize("network", ["bridge", "none", "mine", "container:other"])
def test_services_of_an_image_in_a_network_of_their_own_are_refused(network):
    spec = facts().spec
    job_services.refuse_own_networks(spec, network)  # without an image
    contained = replace(spec, image="trainer:1")
    job_services.refuse_own_networks(contained, "host")
    job_services.refuse_own_networks(replace(contained, services=()), network)
    with pytest.raises(errors.InvalidJob, match=network) as caught:
        job_services.refuse_own_networks(contained, network)
    [field] = caught.value.params["fields"]
    assert (field["field"], field["code"]) == ("services", "services_need_host_network")


FAILURE = {"service": "db", "code": "exited", "exit_code": 3, "signal": None, "line": "oh"}


@pytest.mark.parametrize("code", [None, 0, 1])
def test_a_failed_service_fails_the_job_whatever_main_did(code):
    verdict = judge(
        JobStatus.RUNNING,
        code=code,
        signal=None,
        cause="service_failed",
        stop_cause="service_failed",
        detail=FAILURE,
    )
    assert (verdict.end, verdict.to) == (AttemptEnd.FAILED, JobStatus.FAILED)
    assert verdict.reason == reasons.Reason(reasons.SERVICE_FAILED, FAILURE)


def test_a_cancelled_job_stays_cancelled():
    verdict = judge(JobStatus.CANCELLING, code=0, signal=None, cause="service_failed")
    assert verdict.to is JobStatus.CANCELLED


def test_it_is_tried_again_and_counts():
    given = {"charged": 0, "max_retries": 1, "delays": (60.0,), "detail": FAILURE}
    assert decide(AttemptEnd.FAILED, "service_failed", **given) == Retry(60.0, charged=True)


def test_a_program_that_is_not_there_is_hopeless():
    detail = {**FAILURE, "code": "exec_failed", "errno": 2}
    given = {"charged": 0, "max_retries": 3, "detail": detail}
    assert isinstance(decide(AttemptEnd.FAILED, "service_failed", **given), GiveUp)
