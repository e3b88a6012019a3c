"""The same promises for a user without rights (R41, R55); root becomes somebody else for it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

import runyard.supervisor

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(os.path.abspath(runyard.supervisor.__file__))
UID = 61234  # nobody's number; it needs no account
SHAPES = [
    "plain_children",
    "setsid_child",
    "double_fork_daemon",
    "daemon_empty_environment",
    "daemon_non_dumpable",
    "sigterm_ignorer",
    "stopped_child",
    "tree_bomb_300",
    "nested_subreaper",
]
ENDS = {
    "cancel": ("cancelled", "supervisor", "echild"),
    "main_exits": ("exited", "supervisor", "echild"),
    "supervisor_dies": ("supervisor_lost", "keeper", "scan"),
    "both_die": ("supervisor_lost", "reconciler", "scan"),
}


@pytest.fixture(scope="module")
def as_nobody():
    """Runs a Python file of this folder as the user without rights."""
    place = tempfile.mkdtemp(prefix="runyard-nobody-")
    try:
        shutil.copytree(HERE, f"{place}/tests", ignore=shutil.ignore_patterns("__pycache__"))
        os.makedirs(f"{place}/source/runyard")
        with open(f"{place}/source/runyard/__init__.py", "w"):
            pass
        shutil.copytree(PACKAGE, f"{place}/source/runyard/supervisor")
        os.mkdir(f"{place}/yards")
        identity = other_user()
        if identity:
            for root, folders, files in os.walk(place):
                for name in (root, *(f"{root}/{n}" for n in (*folders, *files))):
                    os.chown(name, UID, UID)
        python = reachable_python(identity)

        def run(*arguments):
            command = [python, "-B", f"{place}/tests/unprivileged_run.py", *arguments]
            environment = {"PATH": "/usr/bin:/bin", "SOURCE": f"{place}/source", "HOME": place}
            done = subprocess.run(
                command,
                env=environment,
                cwd="/",
                capture_output=True,
                text=True,
                check=False,
                timeout=100,
                **identity,
            )
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)

        run.place = place
        yield run
    finally:
        shutil.rmtree(place)


def other_user():
    return {"user": UID, "group": UID, "extra_groups": []} if os.getuid() == 0 else {}


def reachable_python(identity):
    """root's own Python may lie where others cannot read."""
    check = "import sys, ctypes; sys.exit(sys.version_info < (3, 11))"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            done = subprocess.run([python, "-I", "-c", check], check=False, cwd="/", **identity)
        except OSError:
            continue
        if done.returncode == 0:
            return python
    pytest.skip("no Python >= 3.11 that a user without rights can run")
    raise AssertionError


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_ends_leave_nothing_without_rights(as_nobody, shape, how):
    """R41, R55"""
    seen = as_nobody(f"{as_nobody.place}/yards/{shape}-{how}", shape, how)
    end = seen["end"]
    assert seen["dead"]
    assert seen["uid"] == (UID if os.getuid() == 0 else os.getuid())
    assert (end["cause"], end["by"], end["proof"]) == ENDS[how]
    assert end["code"] == (42 if how == "main_exits" else None)
    assert seen["probe"]["containment"] == "subreaper+tag"
