"""`tty` and `isolation` as a person asks for them, through the server."""

import subprocess

import pytest

from runyard.supervisor import namespace
from yards import RunningYard

ALONE = "import os; print(os.getpid(), sorted(n for n in os.listdir('/proc') if n.isdigit()))"


@pytest.fixture
def python(yard):
    return lambda code, **fields: yard.submit([yard.python, "-I", "-c", code], **fields)


def test_a_job_with_a_terminal(yard, python):
    ref = python("import sys; print(sys.stdout.isatty(), sys.stderr.isatty())", tty=True)
    yard.wait(ref, "completed")
    assert yard.logs(ref) == ["True True"]
    ref = python("import sys; print(sys.stdout.isatty())")
    yard.wait(ref, "completed")
    assert yard.logs(ref) == ["False"]


def test_a_job_in_its_own_namespaces(yard, python):
    if obstacle := namespace.obstacle():
        pytest.skip(f"no strict isolation here: {obstacle}")
    ref = python(ALONE, isolation="strict")
    yard.wait(ref, "completed")
    assert yard.logs(ref) == ["2 ['1', '2']"]
    assert yard.ask(f"/jobs/{ref}/receipt")["proof"] == "echild"
    held = yard.submit(["sleep", "600"], isolation="strict", grace_s=5)
    yard.wait(held, "running")
    assert yard.cancel(held).body["status"] == "cancelled"


def test_isolation_is_one_of_two_words(yard):
    refused = yard.api("POST", "/jobs", {"command": ["true"], "isolation": "total"})
    assert (refused.status, refused.body["code"]) == (422, "invalid_job")


class Narrow(RunningYard):
    """A server in a user namespace that may make no PID namespace, as where it is forbidden."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.real_python = self.python

    def spawn(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        script = self.folder / "narrow"
        script.write_text(
            "#!/bin/sh\n"
            "exec unshare --user --map-root-user sh -c "
            '\'echo 0 > /proc/sys/user/max_pid_namespaces; exec "$0" "$@"\' '
            f'{self.real_python} "$@"\n'
        )
        script.chmod(0o755)
        self.python = str(script)
        return super().spawn()


def test_isolation_that_cannot_be_had_is_explained(tmp_path):
    """Not tried again, however many tries are left; words say what is missing."""
    possible = ["unshare", "--user", "--map-root-user", "true"]
    if subprocess.run(possible, capture_output=True, check=False).returncode:
        pytest.skip("no user namespace can be made here")
    yard = Narrow(tmp_path)
    try:
        yard.start()
        ref = yard.submit(["true"], isolation="strict", max_retries=3)
        job = yard.wait(ref, "failed")
        assert job["reason"]["code"] == "isolation_unavailable"
        assert job["reason"]["params"]["path"] == "PID namespace"
        assert len(yard.attempts(ref)) == 1
        yard.python = yard.real_python
        shown = yard.cli("show", ref).stdout
        assert "strict isolation cannot be had here: PID namespace: no more namespaces" in shown
        yard.wait(yard.submit(["true"]), "completed")
    finally:
        yard.stop()
