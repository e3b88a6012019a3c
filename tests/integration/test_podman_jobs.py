"""Jobs with an image on podman, in what is its own: no daemon, and sometimes no init."""

from __future__ import annotations

import pytest

from image_jobs import LOOP, living, run, settings_for, up, up_until_told
from yards import until

pytestmark = pytest.mark.root


def test_the_service_is_killed_in_between(make_yard, podman_engine):
    """R43: podman's containers need no service; the one that comes back knows their codes."""
    yard = make_yard(env=settings_for(podman_engine)).start()
    running = up(yard, f"trap 'exit 5' TERM; {LOOP}")
    ended, go = up_until_told(yard, 9)
    podman_engine.kill9()
    go.touch()
    until(lambda: not living(ended), 60)
    podman_engine.start_again()
    job = yard.wait(ended, "failed", seconds=60)
    assert job["reason"] == {"code": "exit_code", "params": {"code": 9}}
    assert yard.status(running) == "running"
    assert yard.cancel(running).body["status"] == "cancelled"
    assert yard.attempts(running)[0]["exit_code"] == 5
    assert podman_engine.containers() == []


def test_without_an_init_of_its_own(make_yard, podman_without_init):
    """R34: the job is process 1 then; its code, and a cancel with proof, are as always."""
    yard = make_yard(env=settings_for(podman_without_init)).start()
    ref, job = run(yard, "echo $$; exit 3", "failed")
    assert job["reason"] == {"code": "exit_code", "params": {"code": 3}}
    assert yard.logs(ref) == ["1"]
    ref = up(yard, f"trap 'exit 5' TERM; {LOOP}")
    assert yard.cancel(ref).body["receipt"]["proof"] == "container_removed"
    assert yard.attempts(ref)[0]["exit_code"] == 5
    assert podman_without_init.containers() == []
