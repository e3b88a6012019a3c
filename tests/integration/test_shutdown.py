"""How a server ends: with its jobs, by force, or leaving them to the next start."""

import signal
import time

from yards import TERMINAL, Truth, keepers_of, until


def hold(truth, before=""):
    return ["sh", "-c", f"{before} exec 9>{truth.path}; echo up >&9; exec sleep 600"]


def up(truth, count):
    until(lambda: truth.held() and truth.data.count(b"up") == count, words=lambda: truth.data)


def test_sigterm_ends_every_job(make_yard, tmp_path):
    """R51: in parallel, each with its grace; what waits stays waiting; nothing is left."""
    yard = make_yard(max_concurrent=6).start()
    truth = Truth(tmp_path / "truth")
    obeying = [yard.submit(hold(truth), grace_s=30) for _ in range(3)]
    stubborn = [yard.submit(hold(truth, "trap '' TERM;"), grace_s=2) for _ in range(3)]
    up(truth, 6)
    waiting = yard.submit(["true"])
    began = time.monotonic()
    assert yard.terminate() == 0, yard.said()
    assert time.monotonic() - began < 25, "their graces should run at the same time"
    assert not truth.held()
    until(lambda: not keepers_of(yard.data), words=lambda: keepers_of(yard.data))
    yard.start()
    for ref in obeying + stubborn:
        job = yard.job(ref)
        assert (job["status"], job["reason"]["code"]) == ("cancelled", "shutdown")
    yard.wait(waiting, "completed")
    truth.close()


def test_a_second_signal_does_not_wait(make_yard, tmp_path):
    """R51: by force, and still with the proof that all is gone."""
    yard = make_yard().start()
    truth = Truth(tmp_path / "truth")
    ref = yard.submit(hold(truth, "trap '' TERM;"), grace_s=600)
    up(truth, 1)
    yard.process.send_signal(signal.SIGINT)
    until(lambda: yard.status(ref) == "cancelling")
    refused = yard.api("POST", "/jobs", {"command": ["true"]})
    assert (refused.status, refused.body["code"]) == (503, "shutting_down")
    assert yard.terminate() == 0, yard.said()
    assert not truth.held()
    yard.start()
    assert yard.status(ref) == "cancelled"
    truth.close()


def test_keep_leaves_the_jobs_running(make_yard, tmp_path):
    """R42: as the shipped service does, so that an upgrade costs nothing."""
    yard = make_yard("--on-shutdown", "keep").start()
    truth = Truth(tmp_path / "truth")
    ref = yard.submit(hold(truth), grace_s=1)
    up(truth, 1)
    yard.wait(ref, "running")
    assert yard.terminate() == 0, yard.said()
    assert truth.held()
    yard.start()
    assert yard.wait(ref, "running")["attempt"]["number"] == 1
    yard.cancel(ref)
    assert not truth.held()
    truth.close()


def test_an_idle_server_leaves_no_process(make_yard):
    """R51: neither with nor without jobs before; the keeper goes, too."""
    yard = make_yard().start()
    ref = yard.submit(["true"])
    yard.wait(ref, *TERMINAL)
    assert yard.terminate() == 0
    until(lambda: not keepers_of(yard.data), words=lambda: keepers_of(yard.data))


def test_killed_while_it_shuts_down(make_yard, tmp_path):
    """R56: what it had asked for is carried on by the next one."""
    yard = make_yard().start()
    truth = Truth(tmp_path / "truth")
    ref = yard.submit(hold(truth, "trap '' TERM;"), grace_s=7)
    up(truth, 1)
    yard.process.send_signal(signal.SIGTERM)
    until(lambda: yard.status(ref) == "cancelling")
    yard.kill9()
    yard.start()
    yard.wait(ref, "cancelled")
    assert not truth.held()
    truth.close()
