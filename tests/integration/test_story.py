"""The server's log tells each job's life, in words a person searches for, with its ids."""

import re

import pytest

from yards import RunningYard, until

LINE = re.compile(
    r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:?\d\d "
    r"(?P<level>[A-Z]+) +job=(?P<job>\S+) attempt=(?P<attempt>\S+) (?P<said>.*)$"
)
UP = "echo up; while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def yard(tmp_path_factory):
    yard = RunningYard(tmp_path_factory.mktemp("story"), max_concurrent=2).start()
    yield yard
    yard.stop()


def story(yard, ref):
    """(attempt, what was said) of one job, in order; no line about it may be without its id."""
    told = []
    written = (yard.data / "logs" / "server.log").read_text()
    for line in written[: written.rfind("\n") + 1].splitlines():
        found = LINE.match(line)
        assert found, f"not a line of the log: {line!r}"
        if found["job"] == ref:
            told.append((found["attempt"], found["said"]))
        else:
            assert found["job"] != "-" or ref not in line, f"without its id: {line!r}"
    return told


def tells(yard, ref, *steps):
    """The story has exactly these steps: (number of the attempt or None, words it begins with)."""
    until(lambda: len(story(yard, ref)) >= len(steps), words=lambda: story(yard, ref))
    told = story(yard, ref)
    assert len(told) == len(steps), told
    for (attempt, said), (number, words) in zip(told, steps, strict=True):
        assert attempt == ("-" if number is None else f"{ref}.{number}"), told
        assert said.startswith(words), told


def until_told(go):
    """A command that ends each attempt when its file is there."""
    return f"while [ ! -e {go}.$RUNYARD_ATTEMPT ]; do sleep 0.05; done; "


def test_a_job_that_completes(yard, tmp_path):
    """R9, R24"""
    go = tmp_path / "go"
    ref = yard.submit(["sh", "-c", until_told(go)], name="my training")
    yard.wait(ref, "running")
    go.with_suffix(".1").touch()
    yard.wait(ref, "completed")
    tells(
        yard,
        ref,
        (None, "job submitted by local: my training"),
        (1, "job started"),
        (1, "job completed: exit code 0"),
    )


def test_a_job_that_fails_is_retried_and_gives_up(yard, tmp_path):
    """R9, R21: each attempt under its own id."""
    go = tmp_path / "go"
    ref = yard.submit(["sh", "-c", until_told(go) + "exit 3"], max_retries=1)
    for number in (1, 2):
        until(lambda n=number: yard.job(ref)["attempt"] and len(yard.attempts(ref)) == n)
        yard.wait(ref, "running")
        go.with_suffix(f".{number}").touch()
    yard.wait(ref, "failed")
    tells(
        yard,
        ref,
        (None, "job submitted"),
        (1, "job started"),
        (1, "job failed and will be retried: exit code 3"),
        (2, "job started"),
        (2, "job failed: exit code 3"),
    )


def test_a_job_cancelled_while_it_runs(yard):
    """R9: who asked, what was cleaned up, what went back. Asked twice, it is told once."""
    ref = yard.submit(["sh", "-c", f"sleep 600 & {UP}"], ports=2, grace_s=1)
    until(lambda: yard.logs(ref) == ["up"])
    yard.wait(ref, "running")
    yard.cancel(ref)
    yard.cancel(ref)
    tells(
        yard,
        ref,
        (None, "job submitted"),
        (1, "job started"),
        (1, "cancel asked by local, grace 1"),
        (1, "job cancelled: "),
        (1, "cleaning up: "),
        (1, f"ports returned: {yard.attempts(ref)[0]['ports']}"),
    )


def test_a_job_killed_by_force(yard):
    """R7, R9"""
    ref = yard.submit(["sh", "-c", f"trap '' TERM; {UP}"], grace_s=60)
    until(lambda: yard.logs(ref) == ["up"])
    yard.wait(ref, "running")
    yard.cancel(ref, wait=0)
    yard.api("POST", f"/jobs/{ref}/force-kill")
    yard.wait(ref, "cancelled")
    tells(
        yard,
        ref,
        (None, "job submitted"),
        (1, "job started"),
        (1, "cancel asked by local, grace 60"),
        (1, "force-kill asked by local, grace 0"),
        (1, "job cancelled: "),
        (1, "cleaning up: "),
    )


def test_jobs_cancelled_before_starting(yard):
    """R1, R9: in the queue, and with the job they depended on."""
    first = yard.submit(["true"], hold=True)
    second = yard.submit(["true"], depends_on=[first])
    yard.cancel(first)
    tells(yard, first, (None, "job submitted"), (None, "job cancelled before starting, asked by"))
    tells(
        yard,
        second,
        (None, "job submitted"),
        (None, f"job cancelled before starting: {first} did not succeed"),
    )


def test_a_job_whose_client_is_gone(yard):
    """R9, R56"""
    ref = yard.submit(["true"], hold=True, lease_s=1)
    tells(
        yard,
        ref,
        (None, "job submitted"),
        (None, "job cancelled before starting, asked by lease"),
        (None, "lease ran out: not renewed within 1"),
    )


def test_an_adopted_job(make_yard):
    """R9, R42"""
    yard = make_yard().start()
    ref = yard.submit(["sleep", "600"], grace_s=1)
    yard.wait(ref, "running")
    tells(yard, ref, (None, "job submitted"), (1, "job started"))  # written after the record
    yard.kill9()
    yard.start()
    yard.cancel(ref)
    tells(
        yard,
        ref,
        (None, "job submitted"),
        (1, "job started"),
        (1, "adopted: running since"),
        (1, "cancel asked"),
        (1, "job cancelled"),
        (1, "cleaning up"),
    )


def test_a_secret_is_in_no_log(yard):
    """Values whose names look secret are nowhere in what the server writes for people."""
    secrets = {"HF_TOKEN": "hf_notforyou", "WANDB_API_KEY": "wnotforyou"}
    ref = yard.submit(["true"], env_vars=secrets)
    yard.wait(ref, "completed")
    yard.api("POST", "/jobs", {"command": 3, "env_vars": secrets})
    for path in (yard.data / "logs" / "server.log", yard.folder / "server.out"):
        assert "notforyou" not in path.read_text()
