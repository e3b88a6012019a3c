"""The containment tests once more inside a default Docker container, as a plain user.

No network, Docker's default seccomp profile, read-only control groups, no rights: the tests marked
`container` run there from this checkout, and none of them may be skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from docker_engine import CHECKOUT, UID, python_places, read_only
from runyard.supervisor import identity, journal, liveness, reconcile
from yards import until

pytestmark = pytest.mark.root

# How many tests each file has for a container, so that none gets lost unseen.
FILES = {
    "tests/integration/containment/test_tree_shapes.py": 46,
    "tests/integration/containment/test_logs.py": 2,
    "tests/integration/containment/test_innocents.py": 1,
    "tests/integration/containment/test_ladder.py": 1,
    "tests/unit/supervisor/test_probe.py": 2,
    "tests/integration/test_adoption.py": 3,
}


@pytest.fixture
def shared():
    """A folder that containers and this test see at the same path."""
    made = Path(tempfile.mkdtemp(prefix="runyard-container-"))
    os.chown(made, UID, UID)
    yield made
    shutil.rmtree(made)


def options(shared):
    """This interpreter and checkout to read, the folder to write."""
    given = ["--mount", f"type=bind,source={shared},target={shared}"]
    for place in python_places():
        given += read_only(place)
    environment = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(CHECKOUT / "src"),
        "TMPDIR": str(shared),
    }
    for name, value in environment.items():
        given += ["--env", f"{name}={value}"]
    return (*given, "--workdir", str(CHECKOUT))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.timeout(300)
def test_in_a_default_container(docker_engine, shared, file):
    """R55"""
    outcomes = shared / "outcomes.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-m", "container and not slow", "--outcomes", str(outcomes), file]
    done = docker_engine.run(*command, options=options(shared), check=False, timeout=280)
    assert done.returncode == 0, done.stdout[-10000:] + done.stderr[-2000:]
    told = {name: seen["outcome"] for name, seen in json.loads(outcomes.read_text()).items()}
    assert set(told.values()) == {"passed"}, told
    assert len(told) == FILES[file], sorted(told)


def test_what_a_default_container_offers(docker_engine, shared):
    """R55: neither namespaces nor control groups; what everything else rests on is there."""
    program = "import json, sys; from runyard.supervisor import probe; "
    program += "print(json.dumps(probe.probe(sys.argv[1])))"
    done = docker_engine.run(sys.executable, "-c", program, shared, options=options(shared))
    found = json.loads(done.stdout)
    assert not found["strict_isolation"]
    assert (found["cgroup_v2"], found["cgroup_v1_freezer"]) == (None, None)
    assert (found["level"], found["containment"]) == (1, "subreaper+tag")


# Holds the lock of an attempt that names its child as its main process.
SUPERVISE = """
import os, signal, sys, time
from runyard.supervisor import identity, journal, liveness
folder = sys.argv[1]
# Far from the first numbers of a namespace: which of them an interpreter's threads take differs.
while (child := os.fork()) < 100:
    if child == 0:
        signal.pause()
    os.kill(child, 9)
    os.waitpid(child, 0)
journal.create(folder, {"attempt_id": "job-shared.1", "tag": 1 << 60 | 7, "argv": [], "env": {}})
fd = os.open(f"{folder}/journal", os.O_RDWR | os.O_APPEND)
assert liveness.hold(fd)
appender = journal.Appender(fd)
appender.append("supervisor", identity.of_process(os.getpid()))
appender.append("job", {**identity.of_process(child), "sid": child, "started_at": time.time()})
open(f"{folder}/ready", "w").close()
signal.pause()
"""
SETTLE = """
import json, sys
from runyard.supervisor import journal, liveness, reconcile
folder = sys.argv[1]
alive, seen = liveness.supervisor_alive(folder), reconcile.look(folder).state
print(json.dumps({"alive": alive, "seen": seen, "end": reconcile.settle(folder)}))
"""
# Beside a stranger that has the number of the recorded process.
SETTLE_BESIDE = """
import json, os, signal, sys
from runyard.supervisor import journal, reconcile
folder = sys.argv[1]
wanted = journal.read(folder).job["pid"]
while True:
    stranger = os.fork()
    if stranger == 0:
        signal.pause()
    if stranger == wanted:
        break
    os.kill(stranger, 9)
    os.waitpid(stranger, 0)
    assert stranger < wanted, (stranger, wanted)
end = reconcile.settle(folder)
print(json.dumps({"end": end, "lives": os.waitpid(stranger, os.WNOHANG) == (0, 0)}))
"""


def python(code, *arguments):
    source = str(Path(journal.__file__).parents[2])
    code = f"import sys\nsys.path.insert(0, {source!r})\n{code}"
    return (sys.executable, "-S", "-c", code, *arguments)


def test_lock_held_in_other_container_seen_as_alive(docker_engine, shared):
    """R41, R43: two containers share a directory: the lock tells across pid namespaces, and
    nobody settles an attempt whose supervisor lives in the other."""
    folder = shared / "job-shared.1"
    given = options(shared)
    with docker_engine.container(*python(SUPERVISE, folder), options=given) as first:
        until((folder / "ready").exists, words=lambda: docker_engine.docker("logs", first))
        told = json.loads(docker_engine.run(*python(SETTLE, folder), options=given).stdout)
        assert told == {"alive": True, "seen": reconcile.ALIVE, "end": None}
        assert liveness.supervisor_alive(str(folder))  # from the host too
        assert reconcile.settle(str(folder)) is None
        docker_engine.docker("kill", first)
        until(
            lambda: not liveness.supervisor_alive(str(folder)), words="the kernel drops the lock"
        )
    told = json.loads(docker_engine.run(*python(SETTLE, folder), options=given).stdout)
    assert (told["alive"], told["seen"]) == (False, reconcile.LOST)
    assert (told["end"]["cause"], told["end"]["proof"]) == ("lost_host_restart", "boot")


def test_pid_namespace_changed_nothing_signalled(docker_engine, shared):
    """R43: the container is started anew on the same directory, in the same boot, and the recorded
    number is a stranger's now."""
    folder = shared / "job-shared.1"
    given = options(shared)
    with docker_engine.container(*python(SUPERVISE, folder), options=given) as first:
        until((folder / "ready").exists, words=lambda: docker_engine.docker("logs", first))
        recorded = journal.read(str(folder)).job
        assert recorded["boot_id"] == identity.boot_id()
        assert recorded["pidns"] != identity.pid_namespace()
        docker_engine.docker("kill", first)
        until(lambda: not liveness.supervisor_alive(str(folder)), words="its death")
    told = json.loads(docker_engine.run(*python(SETTLE_BESIDE, folder), options=given).stdout)
    assert told["lives"]
    assert (told["end"]["code"], told["end"]["cause"]) == (None, "lost_host_restart")
    assert told["end"]["processes_ended"] == 0
