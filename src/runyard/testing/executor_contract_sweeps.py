"""Ending by force what nobody ends any more: a watcher that hangs, a folder that is lost."""

from __future__ import annotations

import os
import shutil
import time

from runyard.executors.base import Sight, Swept
from runyard.testing.executor_contract_stops import LOOP
from runyard.testing.executor_place import ExecutorPlace, Serving, until

_HOLDS_ON = f"trap '' TERM; {LOOP}"


class SweepContract:
    def test_a_sweep_ends_what_its_watcher_does_not(
        self, place: ExecutorPlace, serving: Serving
    ) -> None:
        """The watcher is stopped, not dead; it goes on afterwards and tells the end."""
        name = serving.start(place.launch(1, _HOLDS_ON))
        serving.said(name, "up")
        place.freeze_watcher(name)
        serving.stop(name, 600.0)
        swept = serving.executor.sweep([name])[name]
        assert swept.killed >= 1
        assert swept.living == ()
        serving.end(name)
        assert place.living(name) == []

    def test_a_sweep_leaves_what_nobody_asked_to_end(
        self, place: ExecutorPlace, serving: Serving
    ) -> None:
        name = serving.start(place.launch(1, LOOP))
        serving.said(name, "up")
        swept = serving.executor.sweep([name])
        assert swept.get(name, Swept()) == Swept()
        until(lambda: serving.look(name).sight is Sight.RUNNING, lambda: serving.look(name))
        assert place.living(name)

    def test_swept_by_nothing_but_its_name(self, place: ExecutorPlace, serving: Serving) -> None:
        """Everything the executor had of it is lost; what bears another name is left alone."""
        made_at = time.time()
        launch = place.launch(1, _HOLDS_ON)
        name = serving.start(launch)
        other = serving.start(place.launch(2, LOOP))
        serving.said(name, "up")
        serving.said(other, "up")
        serving.shut_down()
        shutil.rmtree(os.path.dirname(serving.executor.log_path(name)))
        serving.start_again()
        # An executor that starts may have found it already.
        swept = serving.executor.sweep_traceless({name: (launch.tag, made_at)})
        assert swept[name].living == ()
        until(lambda: not place.living(name), lambda: place.living(name))
        until(lambda: serving.look(other).sight is Sight.RUNNING, lambda: serving.look(other))
