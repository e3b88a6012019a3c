"""What outlives a server: attempts run on, their ends are kept, their watchers may die."""

from __future__ import annotations

import time

from runyard.executors.base import Sight
from runyard.testing.executor_contract_stops import LOOP
from runyard.testing.executor_place import ExecutorPlace, Serving, until


class RestartContract:
    def test_it_runs_on_and_is_adopted(self, place: ExecutorPlace, serving: Serving) -> None:
        name = serving.start(place.launch(1, f"trap 'exit 6' TERM; {LOOP}"))
        serving.said(name, "up")
        until(lambda: serving.look(name).sight is Sight.RUNNING)
        started_at = serving.look(name).started_at
        serving.shut_down()
        serving.start_again()
        seen = serving.look(name)
        assert (seen.sight, seen.started_at) == (Sight.RUNNING, started_at)
        assert name in serving.executor.known()
        serving.stop(name, 30.0)
        assert serving.end(name).code == 6

    def test_it_ended_meanwhile(self, place: ExecutorPlace, serving: Serving) -> None:
        """The time is that of its end, not that of the look."""
        mark = place.folder / "going"
        name = serving.start(place.launch(1, f"echo up; sleep 0.5; echo >'{mark}'; exit 7"))
        serving.said(name, "up")
        serving.shut_down()
        until(mark.exists)
        until(lambda: not place.living(name), lambda: place.living(name))
        back_at = time.time()
        serving.start_again()
        end = serving.end(name)
        assert (end.code, end.cause) == (7, "exited")
        assert end.ended_at <= back_at

    def test_started_again_by_another_server(self, place: ExecutorPlace, serving: Serving) -> None:
        mark = place.folder / "ran"
        launch = place.launch(1, f"echo ran >>'{mark}'; {LOOP}")
        serving.start(launch)
        serving.said(launch.attempt_id, "up")
        serving.shut_down()
        serving.start_again()
        serving.executor.start(launch)
        assert serving.end(serving.start(place.launch(2, "true"))).code == 0
        assert mark.read_text() == "ran\n"

    def test_its_watcher_is_killed(self, place: ExecutorPlace, serving: Serving) -> None:
        """No code is invented, and the end is told when nothing of it lives any more."""
        name = serving.start(place.launch(1, f"trap '' TERM; {LOOP}"))
        serving.said(name, "up")
        place.kill_watcher(name)
        end = serving.end(name)
        assert place.living(name) == []
        assert end.code is None
        assert end.cause in ("supervisor_lost", "lost"), end

    def test_its_watcher_is_killed_without_a_server(
        self, place: ExecutorPlace, serving: Serving
    ) -> None:
        name = serving.start(place.launch(1, LOOP))
        serving.said(name, "up")
        serving.shut_down()
        place.kill_watcher(name)
        serving.start_again()
        end = serving.end(name)
        assert (end.code, place.living(name)) == (None, [])
