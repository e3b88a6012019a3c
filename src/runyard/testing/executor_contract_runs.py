"""Starting, running and ending by itself."""

from __future__ import annotations

import signal
import socket

import pytest

from runyard.executors.base import NewsKind, ServiceLaunch, Sight
from runyard.testing.executor_place import ExecutorPlace, Serving, free_port, until


class RunContract:
    @pytest.mark.parametrize("code", [0, 1, 42, 255])
    def test_the_exit_code_is_told(
        self, place: ExecutorPlace, serving: Serving, code: int
    ) -> None:
        end = serving.end(serving.start(place.launch(1, f"exit {code}")))
        assert (end.code, end.signal, end.cause) == (code, None, "exited")
        assert end.started_at is not None
        assert end.started_at <= end.ended_at

    def test_a_signal_is_told(self, place: ExecutorPlace, serving: Serving) -> None:
        end = serving.end(serving.start(place.launch(1, "kill -SEGV $$")))
        assert place.tells(end, signal.SIGSEGV), end

    def test_a_program_that_is_not_there(self, place: ExecutorPlace, serving: Serving) -> None:
        launch = place.launch(1, "", argv=("/nowhere/program",))
        end = serving.end(serving.start(launch))
        assert end.cause == "exec_failed" or end.code == 127, end

    def test_started_twice_runs_once(self, place: ExecutorPlace, serving: Serving) -> None:
        mark = place.folder / "ran"
        launch = place.launch(1, f"echo ran >>'{mark}'; sleep 0.3")
        serving.start(launch)
        serving.executor.start(launch)
        serving.end(launch.attempt_id)
        serving.executor.start(launch)
        assert serving.end(serving.start(place.launch(2, "true"))).code == 0
        assert mark.read_text() == "ran\n"

    def test_refused_never_runs(self, place: ExecutorPlace, serving: Serving) -> None:
        mark = place.folder / "ran"
        launch = place.launch(1, f"echo ran >>'{mark}'")
        assert serving.executor.refuse(launch.attempt_id) is True
        serving.start(launch)
        assert serving.end(launch.attempt_id).cause == "never_started"
        assert serving.end(serving.start(place.launch(2, "true"))).code == 0
        assert not mark.exists()

    def test_what_is_not_there_is_absent(self, place: ExecutorPlace, serving: Serving) -> None:
        name = place.launch(1, "true").attempt_id
        assert serving.look(name).sight is Sight.ABSENT
        assert name not in serving.executor.known()

    def test_both_streams_are_in_the_log(self, place: ExecutorPlace, serving: Serving) -> None:
        script = "echo out; echo err >&2; printf 'no end of line'"
        name = serving.start(place.launch(1, script))
        serving.end(name)
        assert serving.log(name) == "out\nerr\nno end of line"

    def test_news_tell_what_inspecting_tells(self, place: ExecutorPlace, serving: Serving) -> None:
        name = serving.start(place.launch(1, "sleep 0.2; exit 3"))
        end = serving.end(name)
        ends = until(lambda: [one for one in serving.heard if one.kind is NewsKind.ENDED])
        assert [(one.attempt_id, one.end.code) for one in ends if one.end] == [(name, end.code)]
        started = [one for one in serving.heard if one.kind is NewsKind.STARTED]
        assert [one.attempt_id for one in started] == [name]

    def test_memory_that_runs_out(self, place: ExecutorPlace, serving: Serving) -> None:
        if not place.enforces_memory:
            pytest.skip("nothing enforces memory limits here")
        script = "x=$(head -c 300000000 /dev/zero | tr '\\0' x); sleep 60"
        launch = place.limited(place.launch(1, script, grace_s=1.0), 64)
        end = serving.end(serving.start(launch))
        assert end.cause in ("oom", "oom_child", "oom_soft"), end
        assert end.detail["limit_mb"] == 64

    def test_too_long(self, place: ExecutorPlace, serving: Serving) -> None:
        launch = place.launch(1, "sleep 600", timeout_s=0.5, grace_s=2.0)
        end = serving.end(serving.start(launch))
        assert end.cause == "timeout"
        assert place.living(launch.attempt_id) == []

    def test_its_use_is_told(self, place: ExecutorPlace, serving: Serving) -> None:
        name = serving.start(place.launch(1, "echo up; sleep 600"))
        serving.said(name, "up")
        used = until(lambda: serving.executor.usage([name]).get(name))
        assert used.rss_mb > 0
        assert used.pids

    def test_its_stacks_are_told(self, place: ExecutorPlace, serving: Serving) -> None:
        name = serving.start(place.launch(1, "echo up; sleep 600"))
        serving.said(name, "up")
        told = until(lambda: serving.executor.stacks(name, 10))
        assert all(f"process {one.pid} (" in one.text for one in told), told
        assert serving.look(name).sight is Sight.RUNNING
        assert serving.executor.stacks("nobody.1", 10) == []
        serving.stop(name, 0.5)
        serving.end(name)
        assert serving.executor.stacks(name, 10) == []

    def test_a_service_at_its_port(self, place: ExecutorPlace, serving: Serving) -> None:
        """Needs python3."""
        if not place.has_services:
            pytest.skip("it runs no services")
        port = free_port()
        listen = f"import http.server as h; h.test(h.SimpleHTTPRequestHandler, port={port})"
        service = ServiceLaunch("web", ("python3", "-u", "-c", listen), {}, port)
        ask = f"import urllib.request as u; u.urlopen('http://127.0.0.1:{port}/')"
        script = f'python3 -c "{ask}" && echo answered'
        name = serving.start(place.launch(1, script, services=(service,)))
        end = serving.end(name)
        assert (end.code, serving.log(name).strip()) == (0, "answered"), serving.log(name)
        [state] = serving.executor.services(name)
        assert (state["name"], state["port"], state["restarts"]) == ("web", port, 0), state
        assert place.living(name) == []
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", port))
