"""Services as they are asked for: what is refused, and how many ports they need."""

import pytest

from runyard.domain import errors
from runyard.wire.jobs import read_job

DB = {"name": "db", "command": "db {port}"}
API = {"name": "api", "command": ["serve"], "port": 9000}


def submission(**fields):
    return read_job({"command": "true", **fields}).to_submission()


def refused(**fields):
    with pytest.raises(errors.InvalidJob) as caught:
        submission(**fields)
    return [(found["field"], found["code"]) for found in caught.value.params["fields"]]


def test_auto_ports_come_on_top_of_the_job_s_own():
    assert submission(services=[DB, API]).wanted.port_count == 1
    assert submission(services=[DB, API], ports=2).wanted.port_count == 3
    found = submission(services=[DB], ports=["tensorboard"])
    assert found.wanted.port_count == 2
    assert found.spec.port_names == ("tensorboard",)


def test_services_of_the_client_need_no_port():
    url = {"name": "db", "url": "http://127.0.0.1:5000"}
    assert submission(services=[url]).wanted.port_count == 0


@pytest.mark.parametrize("other", ["db", "DB", "Db"])
def test_two_services_that_become_one_variable(other):
    fields = [DB, {"name": other, "command": "true"}]
    assert refused(services=fields) == [("services[1].name", "duplicate")]


def test_dash_and_underscore_are_one():
    fields = [{**DB, "name": "my-db"}, {**DB, "name": "my_db"}]
    assert refused(services=fields) == [("services[1].name", "duplicate")]


def test_a_service_and_a_service_of_the_client():
    fields = [DB, {"name": "db", "url": "http://127.0.0.1:5000"}]
    assert refused(services=fields) == [("services[1].name", "duplicate")]


def test_a_service_named_as_a_port():
    assert refused(services=[DB], ports=["DB"]) == [("services[0].name", "duplicate")]


def test_two_services_on_one_port():
    fields = [API, {**API, "name": "other"}]
    assert refused(services=fields) == [("services[1].port", "duplicate")]


def test_in_a_batch_the_place_is_named():
    with pytest.raises(errors.InvalidJob) as caught:
        read_job({"command": "true", "services": [DB, DB]}, "jobs[3].")
    assert caught.value.params["fields"][0]["field"] == "jobs[3].services[1].name"


@pytest.mark.parametrize("name", ["", "9", "a b", "../x", "a/b", "a" * 64, 5])
def test_names_that_are_no_names(name):
    assert refused(services=[{**DB, "name": name}]) == [("services[0].name", "bad_name")]
