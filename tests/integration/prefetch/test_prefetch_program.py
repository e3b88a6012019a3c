"""The prefetch program as a process: downloads that are cut, killed, resumed and shared."""

import contextlib
import hashlib
import os
import signal
import time

import pytest

from download_server import content
from runyard.prefetch import plan as plans
from yards import until


def partials(tmp_path):
    return sorted((tmp_path / "cache" / "partials").glob("*.partial"))


def arrived(tmp_path):
    """Of what is not whole yet; a file that gets whole meanwhile is no longer counted."""
    found = 0
    for path in partials(tmp_path):
        with contextlib.suppress(FileNotFoundError):
            found += path.stat().st_size
    return found


def begun(program, tmp_path, least=20_000):
    until(lambda: arrived(tmp_path) >= least, words=lambda: program.progress())
    return program


def test_a_file_arrives_whole_and_by_its_name(server, make_program, tmp_path):
    data = content(300_000)
    program = make_program(server.put("/some/weights.bin", data)).run()
    assert program.status == 0
    path = program.links / "weights.bin"
    assert path.read_bytes() == data
    item = program.items["weights.bin"]
    assert item["path"] == str(path)
    assert (item["bytes"], item["files"], item["fetched_files"]) == (300_000, 1, 1)
    assert item["sha256"] == hashlib.sha256(data).hexdigest()
    progress = program.progress()
    assert (progress["bytes_done"], progress["bytes_total"]) == (300_000, 300_000)
    assert (progress["files_done"], progress["files_total"]) == (1, 1)
    assert progress["state"] == "ended"
    assert progress["outcome"]["code"] == "present"
    assert not partials(tmp_path)
    assert not list(program.links.glob(".*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_ended_in_a_download_it_goes_on_at_that_very_byte(server, make_program, tmp_path, number):
    """R4: it is gone at once, and the next run asks for the rest only."""
    data = content(6_000_000)  # a minute
    url = server.put("/slow.bin", data, rate=100_000)
    first = begun(make_program(url).start(), tmp_path)
    first.send(number)
    first.wait()
    assert first.status == -number
    stopped_at = arrived(tmp_path)
    assert 0 < stopped_at < len(data)

    server.files["/slow.bin"].rate = None
    second = make_program(url).run()
    assert second.status == 0
    assert (second.links / "slow.bin").read_bytes() == data
    request = server.asked("/slow.bin")[-1]
    assert request.range == f"bytes={stopped_at}-"
    assert (request.status, request.sent) == (206, len(data) - stopped_at)


def test_finished_files_are_not_fetched_again(server, make_program, tmp_path):
    """R4: of a plan that was ended half-way, only what is missing is asked for."""
    small = server.put("/small.bin", content(50_000, 1))
    slow = server.put("/slow.bin", content(2_000_000, 2), rate=40_000)
    plain = server.put("/plain.bin", content(10_000, 3), etag=None)
    hashed = plans.Item(plain, hash="sha256:" + hashlib.sha256(content(10_000, 3)).hexdigest())
    first = make_program(small, hashed, slow, parallel=1).start()
    until(
        lambda: (now := first.progress()) and now["files_done"] == 2,
        words=first.progress,
    )
    begun(first, tmp_path, 1)
    first.send(signal.SIGTERM)
    first.wait()
    server.files["/slow.bin"].rate = None
    second = make_program(small, hashed, slow).run()
    assert second.status == 0
    assert [one.status for one in server.asked("/small.bin")] == [200, 304]
    assert [one.status for one in server.asked("/plain.bin")] == [200]
    assert [one.status for one in server.asked("/slow.bin")] == [200, 206]
    assert {name: item["fetched_files"] for name, item in second.items.items()} == {
        "small.bin": 0,
        "plain.bin": 0,
        "slow.bin": 1,
    }


def test_killed_over_and_over_it_still_arrives(server, make_program, tmp_path):
    """R4: every kill -9 costs nothing that had arrived."""
    data = content(6_000_000)
    url = server.put("/slow.bin", data, rate=150_000)
    before = 0
    for _ in range(4):
        program = begun(make_program(url).start(), tmp_path, before + 30_000)
        program.send(signal.SIGKILL)
        program.wait()
        before = arrived(tmp_path)
    server.files["/slow.bin"].rate = None
    last = make_program(url).run()
    assert (last.links / "slow.bin").read_bytes() == data
    starts = [int(one.range[6:-1]) for one in server.asked("/slow.bin")[1:]]
    assert starts == sorted(starts)
    assert starts[-1] == before


def test_cut_connections_are_taken_up_where_they_broke(server, make_program):
    """More cuts than tries: a try that brought something does not count."""
    data = content(100_000)
    url = server.put("/cut.bin", data)
    server.files["/cut.bin"].steps = [{"cut_after": 10_000} for _ in range(7)]
    program = make_program(url, tries=3).run()
    assert program.status == 0
    assert (program.links / "cut.bin").read_bytes() == data
    ranges = [one.range for one in server.asked("/cut.bin")]
    assert ranges == [None, *(f"bytes={10_000 * n}-" for n in range(1, 8))]


@pytest.mark.parametrize("length", [True, False], ids=["length", "chunked"])
def test_a_chunked_answer_that_is_cut(server, make_program, length):
    data = content(90_000)
    url = server.put("/file.bin", data, length=length)
    server.files["/file.bin"].steps = [{"cut_after": 30_000}]
    program = make_program(url).run()
    assert (program.links / "file.bin").read_bytes() == data
    assert server.asked("/file.bin")[1].range == "bytes=30000-"


def test_busy_servers_are_asked_again_after_what_they_say(server, make_program):
    url = server.put("/busy.bin", b"x" * 1000)
    server.files["/busy.bin"].steps = [
        {"status": 429, "headers": {"Retry-After": "1"}},
        {"status": 503},
        {"status": 500},
    ]
    begun_at = time.monotonic()
    program = make_program(url).run()
    assert program.status == 0
    assert time.monotonic() - begun_at >= 1
    notes = [line for line in program.lines if line.get("note") == "trying_again"]
    assert [note["params"]["reason"] for note in notes] == ["rate_limited", "server", "server"]
    assert notes[0]["params"]["wait_s"] == 1


def test_a_server_that_stays_busy_is_given_up(server, make_program):
    url = server.put("/busy.bin", b"x")
    server.files["/busy.bin"].steps = [{"status": 503} for _ in range(20)]
    program = make_program(url, tries=3).run()
    assert program.status == 12
    assert program.outcome["code"] == "network"
    assert program.outcome["params"] == {"http_status": 503, "reason": "server", "tries": 3}
    assert len(server.seen) == 3


def test_a_wait_of_an_hour_is_left_to_the_next_attempt(server, make_program):
    url = server.put("/busy.bin", b"x")
    server.files["/busy.bin"].steps = [{"status": 429, "headers": {"Retry-After": "3600"}}]
    program = make_program(url).run()
    assert program.status == 12
    assert program.outcome["params"]["retry_after_s"] == 3600


def test_a_silent_server_times_out(server, make_program):
    url = server.put("/silent.bin", content(50_000))
    server.files["/silent.bin"].steps = [{"silent": True}, {"silent": True}]
    program = make_program(url, tries=2, timeout_s=0.5).run()
    assert program.status == 12
    assert program.outcome["params"]["reason"] == "timeout"


def test_nobody_listens(make_program, server):
    url = server.put("/x.bin", b"x")
    server.close()
    program = make_program(url, tries=2).run()
    assert program.status == 12
    assert program.outcome["params"]["reason"] in ("refused", "cut")


def test_a_server_that_ignores_ranges_starts_over(server, make_program):
    data = content(60_000)
    url = server.put("/plain.bin", data, ranges=False)
    server.files["/plain.bin"].steps = [{"cut_after": 20_000}]
    program = make_program(url).run()
    assert (program.links / "plain.bin").read_bytes() == data
    assert [one.status for one in server.asked("/plain.bin")] == [200, 200]


@pytest.mark.parametrize(
    "tags",
    [('"one"', '"two"'), ('W/"one"', 'W/"two"'), (None, None)],
    ids=["strong", "weak", "none"],
)
def test_a_file_that_changed_meanwhile_starts_over(server, make_program, tmp_path, tags):
    """No half of one version may be joined to half of another."""
    old, new = content(3_000_000, 1), content(3_000_000, 2)
    url = server.put("/file.bin", old, etag=tags[0], rate=60_000)
    first = begun(make_program(url).start(), tmp_path)
    first.send(signal.SIGTERM)
    first.wait()
    server.put("/file.bin", new, etag=tags[1])
    second = make_program(url).run()
    assert second.status == 0
    assert (second.links / "file.bin").read_bytes() == new


def test_last_modified_is_enough_to_resume(server, make_program, tmp_path):
    data, date = content(3_000_000), "Sat, 01 Aug 2026 10:00:00 GMT"
    url = server.put("/file.bin", data, etag=None, last_modified=date, rate=60_000)
    first = begun(make_program(url).start(), tmp_path)
    first.send(signal.SIGTERM)
    first.wait()
    server.files["/file.bin"].rate = None
    second = make_program(url).run()
    assert (second.links / "file.bin").read_bytes() == data
    assert server.asked("/file.bin")[-1].headers["if-range"] == date
    assert server.asked("/file.bin")[-1].status == 206


def test_killed_between_the_last_byte_and_the_end(server, make_program, tmp_path):
    """Everything is there already: nothing is sent again."""
    data = content(80_000)
    url = server.put("/file.bin", data)
    server.files["/file.bin"].steps = [{"cut_after": 79_999, "rate": 1e6}, {"rate": 1.0}]
    program = begun(make_program(url, tries=1).start(), tmp_path, 79_999)
    program.wait()
    (partial,) = partials(tmp_path)
    with partial.open("ab") as file:
        file.write(data[-1:])
    server.files["/file.bin"].steps = []
    second = make_program(url).run()
    assert (second.links / "file.bin").read_bytes() == data
    assert server.asked("/file.bin")[-1].status == 416


def test_a_wrong_hash_is_refused_and_not_kept(server, make_program, tmp_path):
    url = server.put("/file.bin", b"not what you think")
    program = make_program(plans.Item(url, hash="sha256:" + "0" * 64)).run()
    assert program.status == 13
    assert program.outcome["code"] == "hash_mismatch"
    actual = hashlib.sha256(b"not what you think").hexdigest()
    assert program.outcome["params"] == {"expected": "0" * 64, "actual": actual}
    assert not (program.links / "file.bin").exists()
    assert not list((tmp_path / "cache/blobs").rglob("*/*"))
    assert not partials(tmp_path)


def test_a_damaged_partial_is_fetched_once_more(server, make_program, tmp_path):
    """With a hash to check against, a bad beginning is found at the end and replaced."""
    data = content(3_000_000)
    url = server.put("/file.bin", data, rate=60_000)
    item = plans.Item(url, hash="sha256:" + hashlib.sha256(data).hexdigest())
    first = begun(make_program(item).start(), tmp_path)
    first.send(signal.SIGKILL)
    first.wait()
    (partial,) = partials(tmp_path)
    with partial.open("r+b") as file:
        file.write(b"\0" * 100)
    server.files["/file.bin"].rate = None
    second = make_program(item).run()
    assert second.status == 0
    assert (second.links / "file.bin").read_bytes() == data
    assert [one.status for one in server.asked("/file.bin")] == [200, 206, 200]


def test_two_programs_download_a_file_once(server, make_program, tmp_path):
    data = content(6_000_000)
    url = server.put("/shared.bin", data, rate=150_000)
    first = begun(make_program(url).start(), tmp_path)
    second = make_program(url).start()
    seen = until(
        lambda: (
            (now := second.progress())
            and now["state"] == "waiting"
            and now["bytes_done"] > 0
            and now
        ),
        words=second.progress,
    )
    assert seen["bytes_total"] == len(data)
    assert seen["current"] == "shared.bin"
    server.files["/shared.bin"].rate = None
    assert first.wait().status == second.wait().status == 0
    assert (first.links / "shared.bin").read_bytes() == data
    assert (second.links / "shared.bin").samefile(first.links / "shared.bin")
    # The second one only asked whether the file had changed.
    assert [one.status for one in server.asked("/shared.bin")] == [200, 304]


def test_who_waits_goes_on_when_the_first_is_killed(server, make_program, tmp_path):
    """Cancelling one job does not stop a download that another needs."""
    data = content(4_000_000)
    url = server.put("/shared.bin", data, rate=80_000)
    item = plans.Item(url, hash="sha256:" + hashlib.sha256(data).hexdigest())
    first = begun(make_program(item).start(), tmp_path)
    second = make_program(item).start()
    until(lambda: (now := second.progress()) and now["state"] == "waiting", words=second.progress)
    before = arrived(tmp_path)
    first.send(signal.SIGKILL)
    first.wait()
    server.files["/shared.bin"].rate = None
    assert second.wait().status == 0
    assert (second.links / "shared.bin").read_bytes() == data
    requests = server.asked("/shared.bin")
    assert [one.status for one in requests] == [200, 206]
    assert int(requests[1].range[6:-1]) >= before > 0


def test_many_programs_at_once(server, make_program):
    urls = [server.put(f"/file{n}.bin", content(20_000, n), rate=200_000) for n in range(6)]
    hashes = [hashlib.sha256(content(20_000, n)).hexdigest() for n in range(6)]
    items = [plans.Item(u, hash=f"sha256:{h}") for u, h in zip(urls, hashes, strict=True)]
    programs = [make_program(*items).start() for _ in range(3)]
    assert [program.wait().status for program in programs] == [0, 0, 0]
    assert [len(server.asked(f"/file{n}.bin")) for n in range(6)] == [1] * 6


def test_the_same_content_is_kept_once(server, make_program, tmp_path):
    data = content(50_000)
    one, two = server.put("/one.bin", data), server.put("/two.bin", data, etag='"other"')
    program = make_program(one, two).run()
    assert program.status == 0
    assert (program.links / "one.bin").samefile(program.links / "two.bin")
    assert len(list((tmp_path / "cache/blobs").glob("*/*"))) == 1


def test_a_job_that_wrote_into_the_cache_is_noticed(server, make_program):
    data = content(50_000)
    url = server.put("/file.bin", data)
    first = make_program(url).run()
    path = first.links / "file.bin"
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.write(b"mine")
    second = make_program(url).run()
    assert second.status == 0
    assert (second.links / "file.bin").read_bytes() == data


def test_out_of_reach_the_cached_file_is_used_and_said(server, make_program):
    data = content(1000)
    url = server.put("/file.bin", data)
    assert make_program(url).run().items["file.bin"]["confirmed"]
    server.files["/file.bin"].steps = [{"status": 503} for _ in range(10)]
    second = make_program(url, tries=2).run()
    assert second.status == 0
    assert (second.links / "file.bin").read_bytes() == data
    assert not second.items["file.bin"]["confirmed"]


def test_an_old_version_is_not_used_where_a_new_one_has_begun(server, make_program, tmp_path):
    url = server.put("/file.bin", content(50_000, 1))
    assert make_program(url).run().status == 0
    server.put("/file.bin", content(50_000, 2))
    server.files["/file.bin"].steps = [{"cut_after": 20_000}, {"status": 503}, {"status": 503}]
    assert make_program(url, tries=2).run().status == 12
    assert arrived(tmp_path) == 20_000
    last = make_program(url).run()
    assert (last.links / "file.bin").read_bytes() == content(50_000, 2)
    assert server.asked("/file.bin")[-1].range == "bytes=20000-"


def test_a_second_run_into_the_same_links(server, make_program):
    url = server.put("/file.bin", b"one")
    first = make_program(url).run()
    again = make_program(url, links=first.links).run()
    assert again.status == 0
    server.put("/file.bin", b"two")
    last = make_program(url, links=first.links).run()
    assert last.status == 0
    assert (first.links / "file.bin").read_bytes() == b"two"
    assert os.listdir(first.links) == ["file.bin"]


def test_progress_is_shown_in_bytes_while_it_runs(server, make_program, tmp_path):
    url = server.put("/slow.bin", content(6_000_000), rate=100_000)
    program = begun(make_program(url).start(), tmp_path)
    now = until(
        lambda: (
            (now := program.progress()) and now["bytes_done"] > 0 and now["rate_bps"] > 0 and now
        ),
        words=program.progress,
    )
    assert now["bytes_total"] == 6_000_000
    assert now["current"] == "slow.bin"
    assert (now["files_done"], now["files_total"]) == (0, 1)
    assert now["outcome"] is None
    assert abs(now["at"] - time.time()) < 60


def test_an_empty_file(server, make_program):
    program = make_program(server.put("/empty", b"")).run()
    assert program.status == 0
    assert (program.links / "empty").read_bytes() == b""


def test_nothing_to_do(make_program):
    program = make_program().run()
    assert program.status == 0
    assert program.outcome["items"] == []
