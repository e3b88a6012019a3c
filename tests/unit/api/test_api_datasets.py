"""The registry of datasets over HTTP (R39)."""

from __future__ import annotations

import pytest


def test_registered_listed_looked_at_and_removed(served):
    body = {"name": "images", "uri": "https://user:secret@example.org/i.tar?sig=x"}
    made = served.api("POST", "/datasets", body)
    assert made.status == 201
    assert made.body["uri"] == "https://***@example.org/i.tar?***"
    assert made.body["variable"] == "RUNYARD_DATASET_IMAGES"
    assert served.api("GET", "/datasets").body == [made.body]
    assert served.api("GET", "/datasets/images").body == made.body
    assert served.api("GET", f"/datasets/{made.body['id']}").body == made.body
    assert served.api("DELETE", "/datasets/images").status == 204
    assert served.api("DELETE", "/datasets/images").status == 404
    assert served.api("GET", "/datasets").body == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"uri": "file:///x"}, "name"),
        ({"name": "a b", "uri": "file:///x"}, "name"),
        ({"name": "a", "uri": "ftp://x/y"}, "uri"),
        ({"name": "a", "uri": "file:///x", "hash": "md5:1"}, "hash"),
    ],
)
def test_what_cannot_be_a_dataset(served, body, field):
    refused = served.api("POST", "/datasets", body)
    assert refused.status == 422
    assert [one["field"] for one in refused.body["params"]["fields"]] == [field]


def test_names_that_a_job_could_not_tell_apart(served):
    assert served.api("POST", "/datasets", {"name": "a.b", "uri": "file:///x"}).status == 201
    again = served.api("POST", "/datasets", {"name": "A-b", "uri": "file:///y"})
    assert (again.status, again.body["params"]["name"]) == (409, "a.b")
