"""Logs as a server gives them while jobs write: over holes, progress bars, floods and restarts."""

import time

from runyard.supervisor import journal
from yards import Truth, until

MIB = 1 << 20


def test_log_survives_server_kill9(make_yard, tmp_path):
    """R42: every line is there, those written without a server too."""
    server = make_yard().start()
    truth, go = Truth(tmp_path / "truth"), tmp_path / "go"
    script = (
        f"exec 9>{truth.path}; echo one; echo up >&9; "
        f"while [ ! -e {go} ]; do sleep 0.05; done; echo two; printf three"
    )
    ref = server.submit(["sh", "-c", script])
    until(lambda: truth.held() and truth.data)
    server.wait(ref, "running")
    server.kill9()
    go.touch()
    until(lambda: not truth.held(), words="the job ends")
    server.start()
    server.wait(ref, "completed")
    assert server.logs(ref) == ["one", "two", "three"]
    truth.close()


def test_log_carriage_return_progress(make_yard, tmp_path):
    """A progress bar is one line that shows its newest state, while it grows and after."""
    server = make_yard().start()
    go = tmp_path / "go"
    script = (
        r"printf 'begin\n 10%%|#    |\r 50%%|###  |\r'; "
        f"while [ ! -e {go} ]; do sleep 0.05; done; "
        r"printf '100%%|#####|\ndone\n'"
    )
    ref = server.submit(["sh", "-c", script])
    until(lambda: server.logs(ref) == ["begin", " 50%|###  |"], words=lambda: server.logs(ref))
    go.touch()
    server.wait(ref, "completed")
    assert server.logs(ref) == ["begin", "100%|#####|", "done"]
    raw = server.api("GET", f"/jobs/{ref}/logs?raw=true").data
    assert raw == b"begin\n 10%|#    |\r 50%|###  |\r100%|#####|\ndone\n"


def test_log_offset_reader_over_hole(make_yard, tmp_path):
    """A reader by byte offset finds what it had before the hole, is told of the hole's size, and
    goes on behind it at the same offsets."""
    server = make_yard(env={"RUNYARD_LOG_CAP_MB": "8"}).start()
    go = tmp_path / "go"
    line = "0123456789" * 102 + "123"  # 1 KiB with its end
    script = (
        f"echo first; yes {line} | head -n {64 * 1024}; "
        f"while [ ! -e {go} ]; do sleep 0.05; done; printf last"
    )
    ref = server.submit(["sh", "-c", script])
    folder = str(server.data / "attempts" / f"{ref}.1")
    size = 6 + 64 * MIB
    until(lambda: journal.read(folder).job, words="it starts")

    def bounded():
        holes = journal.read(folder).log_holes
        return holes and holes[-1]["end"] > size - 5 * MIB and holes[-1]

    hole = until(bounded, 60, "the middle is given back")
    go.touch()
    server.wait(ref, "completed")

    def raw(offset, length):
        return server.api("GET", f"/jobs/{ref}/logs?raw=true&offset={offset}&length={length}")

    assert raw(0, 10).data == b"first\n0123"
    before, behind = raw(hole["start"] - 1024, 1024), raw(hole["end"], 2048)
    assert len(before.data) == 1024
    assert line.encode() in behind.data
    assert raw(size, 100).data == b"last"
    over = raw(hole["start"] - 10, 4096).data
    assert b"\0" not in over
    assert b"dropped" in over
    tail = server.logs(ref, tail=2)
    assert tail == [line, "last"]


def test_log_flood_does_not_slow_server(make_yard, tmp_path):
    """Two jobs write as fast as they can; the server answers and runs others meanwhile."""
    server = make_yard(env={"RUNYARD_LOG_CAP_MB": "16"}, max_concurrent=8).start()
    truth = Truth(tmp_path / "truth")
    flood = f"exec 9>{truth.path}; echo up >&9; exec yes flood"
    refs = [server.submit(["sh", "-c", flood], grace_s=1) for _ in range(2)]
    until(lambda: truth.held() and truth.data.count(b"up") == 2)
    for ref in refs:
        server.wait(ref, "running")
    until(lambda: len(server.logs(refs[0], tail=5)) == 5, words="the flood")
    slowest = 0.0
    for _ in range(10):
        began = time.monotonic()
        assert server.call("GET", "/healthz").ok
        assert server.logs(refs[0], tail=5)[-2] == "flood"
        server.wait(server.submit(["true"]), "completed")
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 30
    for ref in refs:
        assert server.cancel(ref, wait=60).body["status"] == "cancelled"
    assert not truth.held()
    truth.close()
