"""Running programs of this folder as somebody without rights, which root becomes for it."""

import contextlib
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
UID = 61234 if os.getuid() == 0 else os.getuid()  # nobody's number; it needs no account


class Nobody:
    """A place of its own with copies of these tests and of the supervisor, and a Python."""

    def __init__(self, place):
        self.place = place
        self.becoming = becoming()
        self.python = reachable_python()
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(HERE, f"{place}/tests", ignore=ignored)
        os.makedirs(f"{place}/source/runyard")
        with open(f"{place}/source/runyard/__init__.py", "w"):
            pass
        shutil.copytree(PACKAGE, f"{place}/source/runyard/supervisor", ignore=ignored)
        os.mkdir(f"{place}/yards")
        os.chmod(place, 0o755)
        if self.becoming:
            for root, folders, files in os.walk(place):
                for name in (root, *(f"{root}/{n}" for n in (*folders, *files))):
                    os.chown(name, UID, UID)

    def run(self, name, *arguments, **environment):
        """What `unprivileged_run.py` prints last, for a yard of this name."""
        with self.start(name, *arguments, **environment) as process:
            out, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
        return json.loads(out.splitlines()[-1])

    @contextlib.contextmanager
    def start(self, name, *arguments, **environment):
        command = [self.python, "-B", f"{self.place}/tests/unprivileged_run.py"]
        process = subprocess.Popen(
            [*command, f"{self.place}/yards/{name}", *arguments],
            env={
                "PATH": "/usr/bin:/bin",
                "SOURCE": f"{self.place}/source",
                "HOME": self.place,
                **environment,
            },
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **self.becoming,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


def becoming():
    """Options of Popen that make a process somebody else's."""
    return {"user": UID, "group": UID, "extra_groups": []} if os.getuid() == 0 else {}


def reachable_python():
    """root's own Python may lie where others cannot read."""
    check = "import sys, ctypes; sys.exit(sys.version_info < (3, 11))"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            done = subprocess.run([python, "-I", "-c", check], check=False, cwd="/", **becoming())
        except OSError:
            continue
        if done.returncode == 0:
            return python
    pytest.skip("no Python >= 3.11 that a user without rights can run")
    raise AssertionError


@pytest.fixture(scope="module")
def nobody():
    place = tempfile.mkdtemp(prefix="runyard-nobody-")
    try:
        yield Nobody(place)
    finally:
        shutil.rmtree(place)
