"""dataset_ids mean something: the data is there before the start (R39)."""

from __future__ import annotations

import hashlib

import pytest

from download_server import DownloadServer, content

IMAGES = content(300_000, seed=7)


@pytest.fixture
def downloads():
    server = DownloadServer()
    yield server
    server.close()


def register(yard, **fields):
    answer = yard.api("POST", "/datasets", fields)
    assert answer.status == 201, answer.body
    return answer.body


def test_a_job_finds_its_datasets(yard, downloads, tmp_path):
    words = tmp_path / "words"
    words.mkdir()
    (words / "a.txt").write_text("alpha")
    told = "sha256:" + hashlib.sha256(IMAGES).hexdigest()
    images = register(yard, name="images.v1", uri=downloads.put("/i.bin", IMAGES), hash=told)
    text = register(yard, name="words", uri=f"file://{words}")
    assert images["variable"] == "RUNYARD_DATASET_IMAGES_V1"
    command = 'wc -c < "$RUNYARD_DATASET_IMAGES_V1"; cat "$RUNYARD_DATASET_WORDS/a.txt"'
    ref = yard.submit(command, dataset_ids=[images["id"], text["id"]])
    yard.wait(ref, "completed", seconds=60)
    assert yard.logs(ref) == [str(len(IMAGES)), "alpha"]
    assert yard.job(ref)["dataset_ids"] == [images["id"], text["id"]]
    # The next job does not even ask: the hash tells that it is the same.
    again = yard.submit(command, dataset_ids=[images["id"], text["id"]])
    yard.wait(again, "completed", seconds=60)
    assert [one.status for one in downloads.asked("/i.bin")] == [200]


def test_data_that_is_not_what_was_registered_is_refused(yard, downloads):
    wrong = "sha256:" + "0" * 64
    made = register(yard, name="images", uri=downloads.put("/i.bin", IMAGES), hash=wrong)
    ref = yard.submit("true", dataset_ids=[made["id"]])
    ended = yard.wait(ref, "failed", seconds=60)
    assert ended["reason"]["code"] == "preparation_failed"
    assert ended["reason"]["params"]["code"] == "hash_mismatch"


def test_unknown_datasets_are_refused_and_deleted_ones_stay_with_their_jobs(yard, tmp_path):
    (tmp_path / "data").write_text("kept")
    made = register(yard, name="data", uri=f"file://{tmp_path}/data")
    refused = yard.api("POST", "/jobs", {"command": "true", "dataset_ids": [made["id"] + 1]})
    assert (refused.status, refused.body["code"]) == (422, "unknown_dataset")
    ref = yard.submit('cat "$RUNYARD_DATASET_DATA"', dataset_ids=[made["id"]], hold=True)
    assert yard.api("DELETE", f"/datasets/{made['id']}").status == 204
    assert yard.api("GET", "/datasets").body == []
    yard.api("POST", f"/jobs/{ref}/release")
    yard.wait(ref, "completed", seconds=60)
    assert yard.logs(ref) == ["kept"]
