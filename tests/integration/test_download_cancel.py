"""Downloads before a start, with a real server and a slow one to download from."""

import time

import pytest

from download_server import DownloadServer, content
from yards import until

MODEL = content(3_000_000, seed=3)
SMALL_FILE = content(1000, seed=4)


@pytest.fixture
def downloads():
    server = DownloadServer()
    yield server
    server.close()


def begun(yard, ref, least=100_000):
    """Until so many bytes of its model have come."""

    def far_enough():
        reason = yard.job(ref)["reason"] or {}
        return (reason.get("params", {}).get("bytes_done") or 0) >= least

    until(far_enough, words=lambda: yard.job(ref)["reason"])


def test_cancel_during_a_slow_download_and_the_next_run_goes_on_at_the_byte(yard, downloads):
    """R1, R4: the end comes in about a second; finished files are not fetched again."""
    whole = downloads.put("/vocabulary.bin", SMALL_FILE)
    model = downloads.put("/model.bin", MODEL, rate=100_000)
    command = ["sh", "-c", 'cat "$RUNYARD_PREFETCH_DIR/model.bin" | wc -c']
    ref = yard.submit(command, prefetch=[whole, model])
    begun(yard, ref)
    shown = yard.job(ref)
    assert (shown["status"], shown["stage"]) == ("pending", "prefetch")
    assert shown["reason"]["code"] == "preparing"
    asked = time.monotonic()
    answer = yard.api("POST", f"/jobs/{ref}/cancel?wait=20")
    assert answer.body["status"] == "cancelled"
    # Under a second on a quiet machine; what is left of the download would take longer than this.
    assert time.monotonic() - asked < 20
    receipt = yard.ask(f"/jobs/{ref}/receipt")
    assert receipt["stage"] == "prefetch"
    assert receipt["seconds"] < 20
    [partial] = yard.folder.rglob("*.partial")
    kept = partial.stat().st_size

    downloads.files["/model.bin"].rate = None
    again = yard.submit(command, prefetch=[whole, model])
    yard.wait(again, "completed")
    assert yard.logs(again) == [str(len(MODEL))]
    second = downloads.asked("/model.bin")[-1]
    start = int(second.range.removeprefix("bytes=").rstrip("-"))
    assert 100_000 <= start < len(MODEL)
    assert start == kept, "not a byte of what had come is fetched again, and none came afterwards"
    until(lambda: second.sent == len(MODEL) - start)  # counted when it is sent
    [told] = yard.ask(f"/jobs/{again}/explain")["downloads"]
    assert (told["name"], told["resumed_bytes"]) == ("model.bin", start)
    assert "model.bin" in yard.cli("explain", again).stdout
    # Asked whether it changed, and told that it did not.
    assert [one.status for one in downloads.asked("/vocabulary.bin")] == [200, 304]


def test_server_killed_during_a_download_and_started_again(yard, downloads):
    """R42, R44: the download runs on and the restarted server starts the job."""
    model = downloads.put("/model.bin", MODEL, rate=100_000)
    ref = yard.submit(["sh", "-c", 'test -s "$RUNYARD_PREFETCH_DIR/model.bin"'], prefetch=[model])
    begun(yard, ref)
    yard.kill9()
    yard.start()
    downloads.files["/model.bin"].rate = None
    yard.wait(ref, "completed")
    assert len(downloads.asked("/model.bin")) == 1


def test_a_shutdown_ends_the_download_too(yard, downloads):
    """R51"""
    model = downloads.put("/model.bin", MODEL, rate=200_000)
    ref = yard.submit(["true"], prefetch=[model])
    begun(yard, ref)
    yard.stop()
    downloads.files["/model.bin"].rate = None
    yard.start()
    yard.wait(ref, "completed")
    assert downloads.asked("/model.bin")[-1].range is not None


def test_what_is_not_there_is_told_before_anything_starts(yard, downloads):
    ref = yard.submit(["true"], prefetch=[downloads.url + "/nothing.bin"], max_retries=3)
    yard.wait(ref, "failed")
    reason = yard.job(ref)["reason"]
    assert reason["code"] == "preparation_failed"
    assert reason["params"]["code"] == "not_found"
    assert yard.attempts(ref) == []
