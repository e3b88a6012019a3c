"""The parts of prefetching by themselves: plan, patience, progress, hashes, partials, cache."""

import hashlib
import json
import os
import time
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from runyard.prefetch import backoff, cache, digests, hub_source, object_access, partial
from runyard.prefetch import plan as plans
from runyard.prefetch.failures import Failure, Trouble
from runyard.prefetch.progress import Tracker
from runyard.prefetch.room import OLD_PARTIAL_S, Room

HASH = "sha256:" + "a" * 64


@pytest.fixture
def kept(tmp_path):
    return cache.Cache(str(tmp_path / "cache"))


def test_a_plan_is_read_as_it_was_written(tmp_path):
    items = (plans.Item("hf://org/model"), plans.Item("https://h/x", "name", HASH))
    plan = plans.Plan("/cache", "/links", items, "/progress", 5, parallel=2)
    plans.write(plan, tmp_path / "plan.json")
    assert plans.read(tmp_path / "plan.json") == plan
    assert (tmp_path / "plan.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "changes",
    [
        {"cache_dir": "relative"},
        {"link_dir": None},
        {"items": {}},
        {"items": [{}]},
        {"items": ["hf://org/model"]},
        {"items": [{"uri": "x", "hash": "md5:1"}]},
        {"items": [{"uri": "x", "name": 1}]},
        {"quota_bytes": -1},
        {"quota_bytes": True},
        {"quota_bytes": 1.5},
        {"parallel": 0},
        {"tries": "3"},
    ],
)
def test_a_plan_that_makes_no_sense(tmp_path, changes):
    fields = {"cache_dir": "/c", "link_dir": "/l", "progress_file": "/p", "items": [], **changes}
    (tmp_path / "plan.json").write_text(json.dumps(fields))
    with pytest.raises(plans.BadPlan):
        plans.read(tmp_path / "plan.json")


def test_exit_codes_keep_their_meaning():
    assert plans.EXIT_STATUS == {
        "present": 0,
        "internal": 1,
        "bad_plan": 2,
        "not_found": 10,
        "auth": 11,
        "network": 12,
        "hash_mismatch": 13,
        "disk_full": 14,
        "bad_uri": 15,
        "quota": 16,
        "bad_answer": 17,
        "storage": 18,
    }


def test_patience_doubles_and_ends():
    slept, noted = [], []
    patience = backoff.Patience(4, 1.0, lambda t, d: noted.append((t.reason, d)), slept.append)
    for _ in range(3):
        patience.wait(Trouble("cut"))
    assert [round(seconds) for seconds in slept] == pytest.approx([1, 2, 4], rel=0.5)
    assert noted == [("cut", seconds) for seconds in slept]
    with pytest.raises(Failure) as raised:
        patience.wait(Trouble("cut"))
    assert raised.value.code == "network"
    assert raised.value.params == {"reason": "cut", "tries": 4}


def test_patience_is_renewed_and_obeys_the_server():
    slept = []
    patience = backoff.Patience(2, 1.0, lambda _trouble, _delay: None, slept.append)
    for _ in range(5):
        patience.renew()
        patience.wait(Trouble("rate_limited", wait_s=7.0))
    assert slept == [7.0] * 5


def test_retry_after():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    date = format_datetime(datetime(2026, 1, 1, 0, 1, tzinfo=UTC), usegmt=True)
    assert backoff.retry_after("12", now.timestamp()) == 12
    assert backoff.retry_after(date, now.timestamp()) == 60
    assert backoff.retry_after(date, now.timestamp() + 1000) == 0
    assert backoff.retry_after("soon", now.timestamp()) is None
    assert backoff.retry_after(None, now.timestamp()) is None


def test_progress_counts_what_files_say(tmp_path):
    now = [100.0]
    tracker = Tracker(str(tmp_path / "progress.json"), lambda: now[0])
    assert tracker.snapshot()["state"] == "listing"
    one, two = tracker.expect("a/one", 100), tracker.expect("a/two", None)
    tracker.show(one, "fetching", 40, None)
    tracker.show(two, "waiting", 5, None)
    tracker.arrived(one, 20)
    now[0] += 2
    shown = tracker.snapshot()
    assert (shown["bytes_done"], shown["bytes_total"]) == (65, None)
    assert (shown["rate_bps"], shown["current"], shown["state"]) == (10.0, "a/one", "fetching")
    tracker.finish(one, 100)
    tracker.show(two, "fetching", 0, 50)  # it started over
    shown = tracker.snapshot()
    assert (shown["bytes_done"], shown["bytes_total"]) == (100, 150)
    assert (shown["files_done"], shown["files_total"]) == (1, 2)
    tracker.end({"code": "present", "items": []})
    assert plans.read_progress(tmp_path / "progress.json")["state"] == "ended"


def test_progress_that_cannot_be_written_ends_nothing(tmp_path):
    Tracker(str(tmp_path / "none" / "progress.json")).write()
    assert plans.read_progress(tmp_path / "none" / "progress.json") is None


def test_hashes_of_all_kinds():
    data = b"some content"
    for digest in (
        digests.Digest("sha256", hashlib.sha256(data).hexdigest()),
        digests.Digest("md5", hashlib.md5(data).hexdigest()),
        digests.Digest("git", hashlib.sha1(b"blob 12\0" + data).hexdigest()),
    ):
        hashing = digests.Hashing(digest, len(data))
        hashing.feed(data[:5])
        assert not hashing.as_expected()
        hashing.feed(data[5:])
        assert hashing.as_expected()
        assert hashing.sha256 == hashlib.sha256(data).hexdigest()


def test_after_a_reboot_only_what_was_synced_is_believed(kept, monkeypatch):
    source = partial.Source(uri="https://h/x", size=100, etag='"1"')
    first = partial.Partial(kept, "source-x", None, None)
    first.begin(source)
    first.append(b"a" * 30)
    first.sync()
    first.append(b"b" * 30)
    first.close()
    same_boot = partial.Partial(kept, "source-x", None, None)
    assert (same_boot.length, same_boot.source) == (60, source)
    same_boot.close()
    monkeypatch.setattr(partial, "_boot_id", lambda: "another")
    later = partial.Partial(kept, "source-x", None, None)
    assert later.length == 30
    assert later.finished().sha256 == hashlib.sha256(b"a" * 30).hexdigest()
    later.close()


def test_a_partial_without_its_sidecar_is_nothing(kept):
    with open(kept.partial_path("source-x"), "wb") as file:
        file.write(b"whose?")
    found = partial.Partial(kept, "source-x", None, None)
    assert found.length == 0
    found.close()


def test_a_lock_is_for_one_and_outlives_its_file(kept):
    held = kept.lock("source-x")
    assert kept.lock("source-x") is None
    os.unlink(kept.path("locks", "source-x"))
    held.release()
    again = kept.lock("source-x")
    assert again is not None
    assert kept.lock("source-x") is None
    again.release()


def test_torn_records_are_as_none(kept):
    kept.write_record("source-x", {"sha256": "1"})
    assert kept.record("source-x")["sha256"] == "1"
    with open(kept.path("records", "source-x.json"), "w") as file:
        file.write('{"sha2')
    assert kept.record("source-x") is None


def test_partials_nobody_came_back_for_are_forgotten(kept):
    for key in ("source-old", "source-new", "source-held"):
        one = partial.Partial(kept, key, None, None)
        one.begin(partial.Source(uri="https://h/x"))
        one.close()
    old = time.time() - OLD_PARTIAL_S - 10
    for key in ("source-old", "source-held"):
        os.utime(kept.partial_path(key), (old, old))
    held = kept.lock("source-held")
    Room(kept, None).forget_old_partials(time.time())
    left = sorted(name for name in os.listdir(kept.path("partials")) if name.endswith("partial"))
    assert left == ["source-held.partial", "source-new.partial"]
    held.release()


def test_what_others_are_fetching_counts_in_full(kept):
    other = partial.Partial(kept, "source-other", None, None)
    other.begin(partial.Source(uri="https://h/x", size=900))
    other.append(b"x" * 10)
    held = kept.lock("source-other")
    room = Room(kept, 1000)
    again = Room(kept, 1000)
    with pytest.raises(Failure, match="quota"):
        room.reserve("source-own", 200, lambda: None)
    room.reserve("source-own", 100, lambda: None)
    held.release()
    again.reserve("source-own", 995, lambda: None)
    assert not os.path.exists(kept.partial_path("source-other"))
    other.close()


def test_a_young_count_is_enough_for_what_surely_fits(kept, monkeypatch):
    room, counts = Room(kept, 1000), []
    count = room._count
    monkeypatch.setattr(room, "_count", lambda keys: counts.append(keys) or count(keys))
    for number in range(10):
        room.reserve(f"source-{number}", 90, lambda: None)
    assert len(counts) == 1
    room.reserve("source-last", 200, lambda: None)  # nothing was begun, so there is room
    assert len(counts) == 2


def test_where_the_hub_token_is_found(tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    assert hub_source.token_of({"HF_TOKEN": " given "}) == "given"
    assert hub_source.token_of({"HF_TOKEN_PATH": str(tmp_path / "token")}) == "from-file"
    assert hub_source.token_of({"HF_HOME": str(tmp_path)}) == "from-file"
    assert hub_source.token_of({"HOME": str(tmp_path)}) is None


def test_where_the_object_store_is_found(tmp_path):
    access = object_access.from_environment({"HOME": str(tmp_path)})
    assert access.base("eu-1") == "https://s3.eu-1.amazonaws.com"
    assert (access.region, access.credentials) == ("us-east-1", None)
    named = {"HOME": str(tmp_path), "AWS_ENDPOINT_URL": "http://all/", "AWS_REGION": "r"}
    assert object_access.from_environment(named).base("r") == "http://all"
    named["AWS_ENDPOINT_URL_S3"] = "http://objects"
    assert object_access.from_environment(named).base("r") == "http://objects"
    (tmp_path / "broken").write_text("not an ini file")
    broken = {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "broken"), "HOME": str(tmp_path)}
    assert object_access.from_environment(broken).credentials is None
