"""Services of an attempt: started before its main process, watched, ended after it, whatever dies
in between (R50)."""

import os
import signal
import socket
import sys

import pytest
from keeper_yard import HERE, Alive, wait_for

from runyard.supervisor import liveness, namespace, reconcile, service_records
from yards import free_port


def program(kind, *arguments):
    words = [kind, *map(str, arguments)]
    return [sys.executable, "-I", "-S", f"{HERE}/service_programs.py", *words]


def service(argv, name="reward", port=None, **fields):
    port = port or free_port()
    return {
        "name": name,
        "argv": argv,
        "env": {"RUNYARD_PORT": str(port)},
        "port": port,
        "health": "tcp",
        "ready_timeout_s": 60.0,
        "restart": "never",
        **fields,
    }


class Scene:
    """One attempt with services, and what its programs told."""

    def __init__(self, yard):
        self.yard = yard
        self.alive = Alive(yard.data_dir, "alive")
        self.path = f"{yard.data_dir}/story"
        open(self.path, "w").close()
        self.attempt_id = None

    def start(self, main, *services, **fields):
        ports = {f"RUNYARD_PORT_{s['name'].upper()}": str(s["port"]) for s in services}
        env = {"STORY": self.path, "ALIVE": self.alive.path, **ports}
        fields.setdefault("leftover_grace_s", 60.0)  # so that words are written on a busy machine
        self.attempt_id = self.yard.start(main, env=env, services=list(services), **fields)
        return self

    def story(self):
        with open(self.path) as file:
            return [line.split(" ", 1)[1].strip() for line in file]

    def await_story(self, *words):
        wait_for(lambda: set(words) <= set(self.story()), f"{words} in {self.story()}")

    def await_state(self, state, name="reward"):
        wait_for(lambda: self.states().get(name) == state, f"{name} to be {state}")

    def states(self):
        return {one["name"]: one["state"] for one in self.all()}

    def all(self):
        return service_records.states(self.yard.journal(self.attempt_id))

    def kinds(self):
        return [record["kind"] for record in self.yard.journal(self.attempt_id).records]

    def end(self):
        """The exit record, once it is seen from outside as well that nothing lives."""
        record = self.yard.wait_end(self.attempt_id)
        self.alive.wait_all_dead()
        for one in record.get("services", ()):
            with socket.socket() as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind(("127.0.0.1", one["port"]))
        return record

    def log(self, name="reward"):
        try:
            with open(f"{self.yard.folder(self.attempt_id)}/service-{name}.log") as file:
                return file.read()
        except FileNotFoundError:
            return ""


@pytest.fixture
def scene(yard):
    return Scene(yard)


def test_a_service_is_ready_before_main_and_ended_after_it(scene):
    scene.start(program("train", 0.2, 7), service(program("serve")))
    end = scene.end()
    assert (end["code"], end["cause"]) == (7, "exited")
    assert scene.story() == [
        "listening",
        "main starts",
        "main reached the service",
        "main ends",
        "service asked to end",
        "service ends",
    ]
    assert scene.log() == "service serves\n"
    [told] = end["services"]
    assert (told["name"], told["restarts"], told["exit_code"]) == ("reward", 0, 0)
    assert end["processes_ended"] == 2


def test_identities_are_recorded_before_anything_runs(scene):
    scene.start(program("train", 0), service(program("serve")))
    scene.end()
    kinds = [kind for kind in scene.kinds() if kind in ("service", "service_ready", "job")]
    assert kinds == ["service", "service_ready", "job"]
    record = scene.yard.journal(scene.attempt_id).first("service")
    assert record["pid"] != scene.yard.journal(scene.attempt_id).job["pid"]
    assert record["start_ticks"] > 0


def test_http_health_waits_for_a_good_answer(scene, tmp_path):
    warm = tmp_path / "warm"
    scene.start(program("train", 0), service(program("http", warm), health="/health"))
    scene.await_story("answers 503")
    assert "main starts" not in scene.story()
    warm.touch()
    end = scene.end()
    assert (end["code"], end["cause"]) == (0, "exited")
    story = scene.story()
    assert story.index("answers 503") < story.index("answers 200") < story.index("main starts")


def test_all_services_start_at_once(scene, tmp_path):
    """The second does not wait for the first, main waits for both."""
    warm = tmp_path / "warm"
    slow = service(program("http", warm), "slow", health="/")
    scene.start(program("train", 0), slow, service(program("serve")))
    scene.await_state("ready")
    assert scene.states()["slow"] == "starting"
    assert "main starts" not in scene.story()
    warm.touch()
    assert scene.end()["code"] == 0


def test_a_service_that_never_gets_ready_fails_the_attempt(scene):
    scene.start(program("train"), service(program("mute"), ready_timeout_s=0.5))
    end = scene.end()
    assert (end["cause"], end["code"], end["started_at"]) == ("service_failed", None, None)
    failure = end["service_failure"]
    assert (failure["service"], failure["code"]) == ("reward", "not_ready")
    assert failure["line"] in ("", "loading the model for ever")  # if it got that far
    assert failure["said"] == os.strerror(111)
    assert "main starts" not in scene.story()
    assert scene.yard.log(scene.attempt_id) == b""


@pytest.mark.parametrize("code", [0, 3])
def test_a_service_that_exits_before_it_is_ready_fails_the_attempt(scene, code):
    scene.start(program("train"), service(program("crash", code), restart="on-failure"))
    failure = scene.end()["service_failure"]
    assert (failure["code"], failure["exit_code"]) == ("exited", code)
    assert failure["line"] == "cannot load the model"
    assert "main starts" not in scene.story()


def test_a_failing_service_takes_the_others_with_it(scene):
    other = service(program("with_daemon"), "other")
    scene.start(program("train"), other, service(program("crash", 3)), leftover_grace_s=0.3)
    assert scene.end()["cause"] == "service_failed"


def test_a_program_that_is_not_there_is_named(scene):
    scene.start(program("train"), service(["/no/such/program"]))
    failure = scene.yard.wait_end(scene.attempt_id)["service_failure"]
    assert (failure["code"], failure["path"], failure["errno"]) == (
        "exec_failed",
        "/no/such/program",
        2,
    )


def test_a_port_that_somebody_else_has_is_not_taken_for_the_service(scene):
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        scene.start(program("train"), service(program("serve"), port=port))
        failure = scene.yard.wait_end(scene.attempt_id)["service_failure"]
    assert (failure["code"], failure["port"]) == ("port_in_use", port)
    again = scene.yard.start(["/bin/true"])  # by the same supervisor
    assert scene.yard.wait_end(again)["code"] == 0


def test_a_failed_service_is_started_again(scene, tmp_path):
    told = tmp_path / "crash"
    argv = program("crash_when_told", told)
    scene.start(program("train"), service(argv, restart="on-failure", restart_delay_s=0.1))
    scene.await_story("main reached the service")
    told.write_text("5")
    wait_for(lambda: scene.all()[0]["restarts"] == 1, "a restart")
    scene.await_state("ready")
    assert "main ends" not in scene.story()
    first = scene.yard.journal(scene.attempt_id).first("service_exit")
    assert (first["code"], first["restart_in_s"]) == (5, 0.1)
    scene.yard.stop(scene.attempt_id)
    end = scene.end()
    assert end["cause"] == "cancelled"
    assert end["services"][0]["restarts"] == 1


def test_one_that_fails_while_another_gets_ready_is_started_again(scene, tmp_path):
    told = tmp_path / "crash"
    fields = {"restart": "on-failure", "restart_delay_s": 0.05}
    warm = tmp_path / "warm"
    slow = service(program("http", warm), "slow", health="/")
    scene.start(program("train", 0), slow, service(program("crash_when_told", told), **fields))
    scene.await_state("ready")
    told.write_text("5")
    wait_for(lambda: scene.all()[1]["restarts"] == 1, "a restart")
    warm.touch()
    end = scene.end()
    assert (end["cause"], end["code"]) == ("exited", 0)
    assert end["services"][1]["restarts"] == 1


@pytest.mark.parametrize("isolation", ["none", "strict"])
def test_what_a_failed_service_leaves_does_not_keep_the_port(scene, tmp_path, isolation):
    """Its forked worker holds the listening socket; it goes before the restart, also where it
    lives on in a namespace of its own."""
    if isolation == "strict" and namespace.obstacle():
        pytest.skip("no namespaces of one's own here")
    code = (
        "import os, socket, sys, time\n"
        "server = socket.socket()\n"
        "server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "server.bind(('127.0.0.1', int(os.environ['RUNYARD_PORT']))); server.listen()\n"
        "if os.fork() == 0: time.sleep(600)\n"
        f"path = {str(tmp_path / 'first')!r}\n"
        "if os.path.exists(path): open(path + '-again', 'w').close(); time.sleep(600)\n"
        "while not os.path.exists(path): time.sleep(0.01)\n"
        "sys.exit(4)\n"
    )
    argv = [sys.executable, "-I", "-S", "-c", code]
    helper = service(argv, restart="on-failure", restart_delay_s=0.05, most_restarts=1)
    scene.start(program("train"), helper, isolation=isolation)
    scene.await_story("main reached the service")
    (tmp_path / "first").touch()
    wait_for(lambda: scene.all()[0]["restarts"] == 1, "a restart")
    # That the port answers is no proof: the worker could do that.
    wait_for((tmp_path / "first-again").exists, "the new one to listen")
    scene.await_state("ready")
    scene.yard.stop(scene.attempt_id)
    assert scene.end()["services"][0]["restarts"] == 1


def test_restarts_are_limited(scene, tmp_path):
    told = tmp_path / "crash"
    argv = program("crash_when_told", told)
    fields = {"restart": "on-failure", "restart_delay_s": 0.01, "most_restarts": 2}
    scene.start(program("train"), service(argv, **fields))
    scene.await_story("main reached the service")
    for number in range(3):
        wait_for(lambda n=number: scene.all() and scene.all()[0]["restarts"] == n, "a restart")
        scene.await_state("ready")
        told.write_text("9")
        wait_for(lambda: not told.exists(), "the crash")
    end = scene.end()
    assert end["cause"] == "service_failed"
    failure = end["service_failure"]
    assert (failure["code"], failure["exit_code"]) == ("restarts_used_up", 9)
    assert end["stop"]["cause"] == "service_failed"


def test_back_off_doubles(scene, tmp_path):
    told = tmp_path / "crash"
    argv = program("crash_when_told", told)
    scene.start(program("train"), service(argv, restart="on-failure", restart_delay_s=0.02))
    scene.await_story("main reached the service")
    for number in range(3):
        wait_for(lambda n=number: scene.all() and scene.all()[0]["restarts"] == n, "a restart")
        scene.await_state("ready")
        told.write_text("1")
        wait_for(lambda: not told.exists(), "the crash")
    exits = lambda: [  # noqa: E731
        record["restart_in_s"]
        for record in scene.yard.journal(scene.attempt_id).records
        if record["kind"] == "service_exit"
    ]
    wait_for(lambda: len(exits()) == 3, "three exits")
    assert exits() == [0.02, 0.04, 0.08]


@pytest.mark.parametrize("how", [3, "kill"])
def test_a_service_that_fails_for_good_ends_main_with_grace(scene, tmp_path, how):
    told = tmp_path / "crash"
    scene.start(program("train"), service(program("crash_when_told", told)))
    scene.await_story("main reached the service")
    if how == "kill":
        os.kill(scene.all()[0]["pid"], signal.SIGKILL)
    else:
        told.write_text(str(how))
    end = scene.end()
    assert (end["cause"], end["code"]) == ("service_failed", 0)
    assert "main asked to end" in scene.story()
    failure = end["service_failure"]
    expected = (None, signal.SIGKILL) if how == "kill" else (3, None)
    assert (failure["exit_code"], failure["signal"]) == expected
    assert end["stop"]["requested_by"] == "supervisor"


def test_a_service_that_exits_with_0_is_done(scene, tmp_path):
    told = tmp_path / "crash"
    argv = program("crash_when_told", told)
    scene.start(program("train"), service(argv, restart="on-failure"))
    scene.await_story("main reached the service")
    told.write_text("0")
    scene.await_state("ended")
    assert "main asked to end" not in scene.story()
    scene.yard.stop(scene.attempt_id)
    end = scene.end()
    assert (end["cause"], end["services"][0]["exit_code"]) == ("cancelled", 0)


def test_how_a_service_ends_after_main_is_no_failure(scene):
    scene.start(program("train", 0.1), service(program("serve", "service", 3)))
    end = scene.end()
    assert (end["cause"], end["code"]) == ("exited", 0)
    assert end["services"][0]["exit_code"] == 3
    assert "service_failure" not in end


def test_stop_while_waiting_ends_everything_at_once(scene):
    scene.start(program("train"), service(program("mute"), ready_timeout_s=600))
    wait_for(scene.all, "the service")
    wait_for(lambda: "loading" in scene.log(), "its words")
    scene.yard.stop(scene.attempt_id, grace_s=600)
    end = scene.end()
    assert (end["cause"], end["started_at"]) == ("cancelled_before_start", None)
    assert end["stop"]["requested_by"] == "tester"
    assert "main starts" not in scene.story()
    assert scene.story()[-1] == "mute ends"
    assert [s["target"] for s in end["signals"]] == ["leftovers"]


def test_force_kill_while_waiting(scene):
    scene.start(program("train"), service(program("mute"), ready_timeout_s=600))
    wait_for(lambda: scene.all() and "loading" in scene.log(), "the service")
    scene.yard.stop(scene.attempt_id, grace_s=0)
    end = scene.end()
    assert end["cause"] == "cancelled_before_start"
    assert "mute ends" not in scene.story()
    assert end["services"][0]["signal"] == signal.SIGKILL


def test_stop_ends_main_first_and_services_live_through_its_grace(scene):
    scene.start(program("train"), service(program("slow_to_end")))
    scene.await_story("main reached the service")
    scene.yard.stop(scene.attempt_id)
    end = scene.end()
    assert (end["cause"], end["code"]) == ("cancelled", 0)
    order = ["main asked to end", "main ends", "service asked to end", "service ends"]
    assert scene.story()[-4:] == order
    assert [s["target"] for s in end["signals"]] == ["group", "leftovers"]


def test_services_have_their_grace_also_when_main_used_up_its_own(scene):
    scene.start(program("stubborn"), service(program("slow_to_end")))
    scene.await_story("main starts")
    scene.yard.stop(scene.attempt_id, grace_s=600)
    scene.await_story("main asked to end")
    scene.yard.stop(scene.attempt_id, seq=2, grace_s=0.1)
    end = scene.end()
    assert (end["cause"], end["signal"]) == ("cancelled", signal.SIGKILL)
    assert scene.story()[-3:] == ["main asked to end", "service asked to end", "service ends"]
    assert not end["killed_externally"]


def test_force_kill_spares_no_service(scene):
    scene.start(program("train"), service(program("serve")))
    scene.await_story("main reached the service")
    scene.yard.stop(scene.attempt_id, grace_s=0)
    end = scene.end()
    assert (end["signal"], end["services"][0]["signal"]) == (signal.SIGKILL, signal.SIGKILL)
    assert "service asked to end" not in scene.story()


def test_a_service_that_dies_during_the_grace_changes_nothing(scene):
    scene.start(program("stubborn"), service(program("serve"), restart="on-failure"))
    scene.await_story("main starts")
    scene.yard.stop(scene.attempt_id, grace_s=600)
    scene.await_story("main asked to end")
    os.kill(scene.all()[0]["pid"], signal.SIGKILL)
    scene.await_state("ended")
    scene.yard.stop(scene.attempt_id, seq=2, grace_s=0)
    end = scene.end()
    assert (end["cause"], end["services"][0]["restarts"]) == ("cancelled", 0)


def test_time_limit_ends_services_too(scene):
    scene.start(program("train"), service(program("serve")), timeout_s=0.3)
    assert scene.end()["cause"] == "timeout"
    assert "service ends" in scene.story()


def test_unhealthy_is_told_and_nobody_is_ended_for_it(scene, tmp_path):
    hush = tmp_path / "hush"
    scene.start(program("train"), service(program("stop_answering", hush), check_s=0.05))
    scene.await_story("main reached the service")
    hush.touch()
    news = scene.yard.hear(scene.attempt_id, "service_unhealthy")
    assert (news["name"], news["said"]) == ("reward", os.strerror(111))
    hush.unlink()
    scene.yard.hear(scene.attempt_id, "service_healthy")
    assert scene.all()[0]["healthy"] is True
    assert scene.states() == {"reward": "ready"}
    scene.yard.stop(scene.attempt_id)
    assert scene.end()["cause"] == "cancelled"


def test_a_program_of_main_that_is_not_there_ends_the_services(scene):
    scene.start(["/no/such/program"], service(program("serve")))
    end = scene.end()
    assert (end["cause"], end["path"]) == ("exec_failed", "/no/such/program")
    assert end["processes_ended"] >= 1
    assert "service ends" in scene.story()


def test_the_log_of_a_service_is_bounded_too(scene):
    code = "while :; do head -c 65536 /dev/zero | tr '\\0' x; echo; sleep 0.01; done"
    argv = ["/bin/sh", "-c", code + " & exec " + " ".join(program("serve"))]
    scene.start(program("train"), service(argv), log_cap_bytes=1 << 20)
    scene.await_story("main reached the service")
    holes = lambda: [r for r in scene.yard.journal(scene.attempt_id).log_holes if "log" in r]  # noqa: E731
    wait_for(holes, "a hole")
    assert holes()[0]["log"] == "service-reward.log"
    scene.yard.stop(scene.attempt_id)
    scene.end()


STEPS = ["service_forked", "service_record", "service_go", "services_ready", "go", "main_exit"]


@pytest.mark.parametrize("step", STEPS)
def test_supervisor_dies_with_keeper(scene, step):
    """R41: the services die with it, the keeper proves it and writes the end."""
    scene.start(
        program("train", 0.2), service(program("with_daemon")), testing={"die_after": step}
    )
    end = scene.end()
    assert end["by"] == "keeper"
    expected = {"service_forked": "never_started", "main_exit": "exited"}
    assert end["cause"] == expected.get(step, "supervisor_lost")
    if step != "service_forked":
        assert [one["name"] for one in end["services"]] == ["reward"]


@pytest.mark.parametrize("step", STEPS)
def test_supervisor_and_keeper_die(scene, step):
    keeper = scene.yard.keeper_pid()
    main = program("train", 0.2)
    scene.start(main, service(program("with_daemon")), testing={"die_after": step})
    folder = scene.yard.folder(scene.attempt_id)
    wait_for(lambda: scene.yard.journal(scene.attempt_id).supervisor, "the supervisor")
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: not liveness.supervisor_alive(folder), "the supervisor's death")
    end = reconcile.settle(folder)
    assert end is not None
    assert end["cause"] in ("never_started", "supervisor_lost", "exited")
    scene.end()


@pytest.mark.parametrize("with_keeper", [True, False])
def test_supervisor_killed_while_all_runs(scene, with_keeper):
    scene.start(program("train"), service(program("with_daemon")))
    scene.await_story("main reached the service")
    if not with_keeper:
        os.kill(scene.yard.keeper_pid(), signal.SIGKILL)
    os.kill(scene.yard.supervisor_pid(scene.attempt_id), signal.SIGKILL)
    if not with_keeper:
        folder = scene.yard.folder(scene.attempt_id)
        wait_for(lambda: not liveness.supervisor_alive(folder), "the supervisor's death")
        assert reconcile.settle(folder)["by"] == "reconciler"
    end = scene.end()
    assert end["cause"] == "supervisor_lost"
    assert end["services"][0]["exit_code"] is None


def test_supervisor_killed_while_services_get_ready(scene):
    scene.start(program("train"), service(program("mute"), ready_timeout_s=600))
    wait_for(lambda: scene.all() and "loading" in scene.log(), "the service")
    os.kill(scene.yard.supervisor_pid(scene.attempt_id), signal.SIGKILL)
    end = scene.end()
    assert (end["by"], end["cause"], end["started_at"]) == ("keeper", "supervisor_lost", None)


def test_the_failure_is_told_also_when_the_supervisor_dies_before_the_end(scene, tmp_path):
    told = tmp_path / "crash"
    argv = program("crash_when_told", told)
    scene.start(program("train"), service(argv), testing={"die_after": "main_exit"})
    scene.await_story("main reached the service")
    told.write_text("3")
    end = scene.end()
    assert (end["by"], end["cause"]) == ("keeper", "service_failed")
    assert end["service_failure"]["exit_code"] == 3


def test_the_same_supervisor_takes_attempts_without_services_afterwards(scene):
    scene.start(program("train", 0), service(program("serve")))
    scene.end()
    for _ in range(6):
        assert scene.yard.wait_end(scene.yard.start(["/bin/sh", "-c", "exit 4"]))["code"] == 4


@pytest.mark.skipif(bool(namespace.obstacle()), reason="no namespaces of one's own here")
def test_services_of_a_job_in_namespaces_of_its_own(scene):
    scene.start(program("train"), service(program("serve")), isolation="strict")
    scene.await_story("main reached the service")
    scene.yard.stop(scene.attempt_id)
    end = scene.end()
    assert (end["cause"], end["services"][0]["exit_code"]) == ("cancelled", 0)
    assert scene.story()[-2:] == ["service asked to end", "service ends"]


def test_services_of_a_job_with_a_terminal_write_to_their_log(scene):
    scene.start(program("train", 0.1), service(program("serve")), tty=True)
    assert scene.end()["code"] == 0
    assert scene.log() == "service serves\n"


def test_services_share_the_group_and_its_limits(scene):
    scene.start(program("train", 0.3), service(program("serve")), cgroup=True, pids_limit=50)
    end = scene.end()
    assert (end["code"], end["cause"]) == (0, "exited")
    if scene.yard.journal(scene.attempt_id).first("cgroup") is not None:
        assert end["cgroup_removed"] is True


def test_sigterm_to_a_waiting_supervisor_is_a_stop(scene):
    scene.start(program("train"), service(program("mute"), ready_timeout_s=600))
    wait_for(lambda: scene.all() and "loading" in scene.log(), "the service")
    os.kill(scene.yard.supervisor_pid(scene.attempt_id), signal.SIGTERM)
    end = scene.end()
    assert (end["cause"], end["stop"]["cause"]) == ("cancelled_before_start", "supervisor_term")
