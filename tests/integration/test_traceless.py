"""The last resort: nothing is left of an attempt but its id, and still its processes are found."""

import shutil
import subprocess
import sys

import pytest

from yards import Truth, until

# A daemon without its environment and one without its session: by tag and by marker.
TREE = """
exec 9>{truth}
(setsid env -i sh -c 'echo up >&9; exec sleep 600' &)
setsid sh -c 'echo up >&9; exec sleep 600' &
echo up >&9
exec sleep 600
"""


@pytest.fixture
def quick(make_yard):
    return make_yard(env={"RUNYARD_RECONCILE_INTERVAL": "1"}).start()


def test_processes_found_with_nothing_but_the_id(quick, tmp_path):
    """R43: the folder is gone with all that was recorded; a stranger that has the id in its
    command line, or a marker of another attempt, is left alone."""
    truth = Truth(tmp_path / "truth")
    ref = quick.submit(["sh", "-c", TREE.format(truth=truth.path)], grace_s=1)
    quick.wait(ref, "running")
    until(lambda: truth.held() and truth.data.count(b"up") == 3)
    attempt = quick.job(ref)["attempt"]["attempt_id"]
    strangers = [
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", ref, attempt]),
        subprocess.Popen(["sleep", "600"], env={"RUNYARD_ATTEMPT_ID": attempt + "1"}),
    ]
    try:
        shutil.rmtree(quick.data / "attempts" / attempt)
        quick.api("POST", f"/jobs/{ref}/cancel")
        # An attempt is given 10 s to be handed over before its absence means anything.
        quick.wait(ref, "cancelled", seconds=60)
        assert not truth.held()
        # Its supervisor lives, without its folder: whoever tells the end first, it is proven.
        assert quick.ask(f"/jobs/{ref}/receipt")["proof"] in ("scan", "echild")
        assert [stranger.poll() for stranger in strangers] == [None, None]
    finally:
        for stranger in strangers:
            stranger.kill()
            stranger.wait()
        truth.close()


def test_a_lost_folder_and_a_killed_server(quick, tmp_path):
    """R43, R44: found at the next start as well, and never told as completed."""
    truth = Truth(tmp_path / "truth")
    ref = quick.submit(["sh", "-c", TREE.format(truth=truth.path)], grace_s=1, max_retries=0)
    quick.wait(ref, "running")
    until(lambda: truth.held() and truth.data.count(b"up") == 3)
    attempt = quick.job(ref)["attempt"]["attempt_id"]
    quick.kill9()
    shutil.rmtree(quick.data / "attempts" / attempt)
    quick.start()
    quick.wait(ref, "failed", seconds=60)
    until(lambda: not truth.held())
    until(lambda: quick.attempts(ref)[0]["status"] == "ended", words=lambda: quick.attempts(ref))
    assert quick.attempts(ref)[0]["end"] in ("lost", "failed")
    truth.close()
