"""The same promises for a user without rights (R41, R55); root becomes somebody else for it."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
# What of each file needs root, and is left out as a plain user; all the rest must pass.
FILES = {
    "containment/test_tree_shapes.py": set(),
    "containment/test_grace.py": set(),
    "containment/test_exit_status.py": set(),
    "containment/test_supervisor_death.py": set(),
    "containment/test_keeper_death.py": {"test_socket_owned_by_stranger_rejected"},
    "containment/test_innocents.py": {
        "test_other_users_process_not_killed",
        "test_pid_reuse_forced_stale_pidfd_refused",
        "test_pid_reuse_same_tick_start_time",
    },
    "containment/test_files.py": {
        "test_disk_full_at_exit_record",
        "test_disk_full_job_sees_enospc_supervisor_lives",
        "test_disk_full_before_the_start",
    },
    "containment/test_logs.py": set(),
    "containment/test_leftovers.py": set(),
    "containment/test_ladder.py": set(),
    "test_adoption.py": set(),
}
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to make a set-uid program")


@pytest.fixture(scope="module")
def copy(person):
    """The tests where a person without rights can read them."""
    folder = person.folder(f"checkout-{os.urandom(4).hex()}")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "tests", folder / "tests", ignore=ignored)
    shutil.copyfile(CHECKOUT / "pyproject.toml", folder / "pyproject.toml")
    folder.chmod(0o755)
    return folder


SLOW = {"containment/test_keeper_death.py", "containment/test_logs.py", "test_adoption.py"}


@pytest.mark.parametrize(
    "file", [pytest.param(f, marks=[pytest.mark.slow] if f in SLOW else []) for f in FILES]
)
@pytest.mark.timeout(400)
def test_as_a_plain_user(person, copy, file):
    """R41, R55: the same tests once more, by somebody without rights."""
    if not person.becoming:
        return  # the tests run as a plain user already
    work = person.folder(f"work-{os.urandom(4).hex()}")
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-m", "not slow and not serial", f"--basetemp={work}/tmp"]
    command += ["--outcomes", work / "outcomes.json", f"tests/integration/{file}"]
    # Without CI, where a skip would fail, and without folders that only root can look into.
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(work)}
    # The ports of this worker, which waits meanwhile.
    environment |= {k: v for k, v in os.environ.items() if k == "PYTEST_XDIST_WORKER"}
    done = person.run(person.python, *command, cwd=copy, env=environment, timeout=380)
    assert done.returncode == 0, done.stdout[-10000:] + done.stderr[-2000:]
    told = json.loads((work / "outcomes.json").read_text())
    skipped = {
        name.partition("::")[2] for name, seen in told.items() if seen["outcome"] != "passed"
    }
    assert skipped == FILES[file]
    assert len(told) > len(skipped)


def test_directory_read_only(nobody):
    """While it runs: the end is proven and recorded all the same, and what could not be removed
    is told. Before it runs: nothing starts, others are not held up."""
    running = nobody.run("read-only-running", "read_only_while_running")
    assert running["dead"]
    assert not running["asked"]
    assert (running["end"]["cause"], running["end"]["proof"]) == ("cancelled", "echild")
    assert not running["end"]["temp_removed"]
    never = nobody.run("read-only-start", "read_only_from_the_start")
    assert (never["before"], never["other"], never["log"]) == (None, 3, "")
    assert (never["end"]["cause"], never["end"]["code"]) == ("never_started", None)


@pytest.fixture
def become_root(nobody):
    """A program with which anybody becomes root, where that is not prevented."""
    if os.statvfs(nobody.place).f_flag & os.ST_NOSUID:
        pytest.skip("set-uid programs have no effect on this file system")
    program = f"{nobody.place}/become_root"
    shutil.copyfile(shutil.which("setpriv"), program)
    os.chmod(program, 0o4755)
    yield program
    os.unlink(program)


@needs_root
def test_setuid_child_prevented_by_no_new_privs(nobody, become_root):
    seen = nobody.run("prevented", "becomes_root", PROGRAM=become_root, ALLOWED="no")
    assert "\n0\n" not in f"\n{seen['log']}"
    assert (seen["end"]["cause"], seen["end"]["proof"]) == ("cancelled", "echild")
    assert seen["end"]["was_stuck"] == []


@needs_root
def test_setuid_child_reported_when_allowed(nobody, become_root):
    """What another user's process is called is told; the attempt does not end while it lives."""
    allowed = {"PROGRAM": become_root, "ALLOWED": "yes"}
    with nobody.start("allowed", "becomes_root", **allowed) as process:
        told = json.loads(process.stdout.readline())
        assert not told["ended"]
        [stuck] = [p for p in told["stuck"] if p["uid"] == 0]
        assert stuck["comm"] == "sleep"
        os.kill(stuck["pid"], signal.SIGKILL)
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    end = json.loads(out)["end"]
    assert (end["cause"], end["proof"], end["stuck"]) == ("cancelled", "echild", [])
    assert stuck["pid"] in [p["pid"] for p in end["was_stuck"]]
