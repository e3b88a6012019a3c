"""Ending what runs: with grace, without, again, too early and too late; and what is left then."""

from __future__ import annotations

import os
import signal
import time

from runyard.executors.base import Sight
from runyard.testing.executor_place import ExecutorPlace, Serving, until

LOOP = "echo up; while :; do sleep 0.1; done"


class StopContract:
    def test_cancel_lets_it_finish(self, place: ExecutorPlace, serving: Serving) -> None:
        """Its own exit code is kept, and the file that says why was there before the signal."""
        script = f"trap 'test -e $RUNYARD_STOP_FILE && echo told; exit 5' TERM; {LOOP}"
        name = serving.start(place.launch(1, script))
        serving.said(name, "up")
        serving.stop(name, 30.0)
        end = serving.end(name)
        assert (end.code, end.cause) == (5, "cancelled")
        assert "told" in serving.log(name)
        assert place.living(name) == []

    def test_a_signal_reaches_what_a_shell_runs(
        self, place: ExecutorPlace, serving: Serving
    ) -> None:
        inner = "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"
        name = serving.start(place.launch(1, f'trap : TERM; sh -c "{inner}"; true'))
        serving.said(name, "up")
        serving.stop(name, 30.0)
        serving.end(name)
        assert "saved" in serving.log(name)

    def test_after_the_grace_it_is_killed(self, place: ExecutorPlace, serving: Serving) -> None:
        name = serving.start(place.launch(1, f"trap '' TERM; {LOOP}"))
        serving.said(name, "up")
        serving.stop(name, 0.5)
        end = serving.end(name)
        assert end.cause == "cancelled"
        assert place.tells(end, signal.SIGKILL), end
        assert place.living(name) == []

    def test_force_kill(self, place: ExecutorPlace, serving: Serving) -> None:
        name = serving.start(place.launch(1, f"trap 'echo asked' TERM; {LOOP}"))
        serving.said(name, "up")
        serving.stop(name, 0.0)
        end = serving.end(name)
        assert end.cause == "cancelled"
        assert place.tells(end, signal.SIGKILL), end
        assert "asked" not in serving.log(name)
        assert place.living(name) == []

    def test_a_second_stop_shortens_the_grace(
        self, place: ExecutorPlace, serving: Serving
    ) -> None:
        name = serving.start(place.launch(1, f"trap 'echo asked' TERM; {LOOP}"))
        serving.said(name, "up")
        serving.stop(name, 600.0)
        serving.said(name, "asked")
        assert serving.look(name).sight is Sight.STOPPING
        serving.stop(name, 0.0)
        assert serving.end(name).cause == "cancelled"

    def test_stopped_before_it_starts(self, place: ExecutorPlace, serving: Serving) -> None:
        mark = place.folder / "ran"
        launch = place.launch(1, f"echo ran >>'{mark}'")
        serving.stop(launch.attempt_id, 5.0)
        end = serving.end(serving.start(launch))
        assert (end.cause, end.code) == ("cancelled_before_start", None)
        assert not mark.exists()

    def test_stopped_when_it_has_ended(self, place: ExecutorPlace, serving: Serving) -> None:
        name = serving.start(place.launch(1, "exit 3"))
        before = serving.end(name)
        serving.stop(name, 5.0)
        assert serving.end(name) == before

    def test_what_it_left_behind_is_ended(self, place: ExecutorPlace, serving: Serving) -> None:
        """Told by the kernel: every process holds the write end of one FIFO."""
        fifo = place.folder / "truth"
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        try:
            daemon = "setsid sh -c 'echo deep; exec sleep 600' >&9 2>&1 &"
            name = serving.start(place.launch(1, f"exec 9>'{fifo}'; {daemon} sleep 0.5; exit 4"))
            assert serving.end(name).code == 4
            while os.read(reader, 4096):
                pass  # BlockingIOError here: somebody still holds the other end
        finally:
            os.close(reader)
        assert place.living(name) == []

    def test_the_receipt(self, place: ExecutorPlace, serving: Serving) -> None:
        name = serving.start(place.launch(1, f"trap '' TERM; {LOOP}"))
        serving.said(name, "up")
        asked_at = time.time()
        serving.stop(name, 0.5)
        receipt = serving.end(name).receipt
        assert receipt["proof"]
        assert [one["signal"] for one in receipt["signals"]] == ["TERM", "KILL"]
        assert all(one["at"] >= asked_at - 1 for one in receipt["signals"])
        assert receipt["processes_ended"] >= 1
        assert receipt["temp_removed"] is True
        assert receipt["stop"]["requested_by"] == "ann"
        assert receipt["seconds"] >= 0.5

    def test_removed_there_is_nothing_left(self, place: ExecutorPlace, serving: Serving) -> None:
        name = serving.start(place.launch(1, "echo x; mkdir -p $RUNYARD_RUN_DIR; true"))
        serving.end(name)
        until(lambda: name in serving.executor.known())
        serving.executor.remove(name)
        assert name not in serving.executor.known()
        assert serving.look(name).sight is Sight.ABSENT
        assert not os.path.exists(os.path.dirname(serving.executor.log_path(name)))
        serving.launched.remove(name)
