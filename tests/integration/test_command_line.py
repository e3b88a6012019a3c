"""The command line and the client against a real server."""

import os
import signal
import subprocess
import sys

import pytest

import runyard
from runyard.sdk.job import ENDED
from yards import SMALL, until


@pytest.fixture
def cli(yard, tmp_path):
    """Starts a command; the caller waits for it."""
    started = []

    def spawn(*words):
        environment = yard.env | {"RUNYARD_DATA_DIR": str(yard.data)}
        process = subprocess.Popen(
            [sys.executable, "-m", "runyard", *map(str, words)],
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield spawn
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait(10)
        process.stdout.close()
        process.stderr.close()


@pytest.fixture
def client(yard):
    with runyard.Client(yard.url, yard.key) as made:
        yield made


def small(*flags):
    return ("--cpus", "0.01", "--mem", "10MB", "--gpus", "0", "--retries", "0", *flags)


def done(process, seconds=60):
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err.decode()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_run_shows_every_byte_and_ends_with_the_jobs_code(cli):
    program = r"printf 'a\rb\377\000\n'; printf end; exit 7"
    code, out, err = done(cli("run", *small(), "--", "sh", "-c", program))
    assert (code, out) == (7, b"a\rb\xff\x00\nend")
    assert "exit code 7" in err


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_job_before_the_client(cli, client, number, expected):
    """R50"""
    process = cli("run", *small("--grace", "1s"), "--", "sh", "-c", "echo $$; exec sleep 300")
    pid = int(process.stdout.readline())
    process.send_signal(number)
    code, _, err = done(process)
    assert code == expected
    assert not alive(pid)
    assert next(client.jobs()).status == "cancelled"
    assert "ended in" in err


def test_a_second_signal_does_not_wait_for_the_grace(cli):
    program = "trap '' TERM; echo $$; while :; do sleep 0.2; done"
    process = cli("run", *small("--grace", "100s"), "--", "sh", "-c", program)
    pid = int(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    assert any(b"cancelling" in line for line in iter(process.stderr.readline, b""))
    process.send_signal(signal.SIGINT)
    assert done(process)[0] == 130
    assert not alive(pid)


def test_a_client_goes_on_after_the_server_was_killed_and_started_again(cli, yard, tmp_path):
    """R42"""
    go = tmp_path / "go"
    program = f"echo one; while [ ! -e {go} ]; do sleep 0.1; done; echo two; exit 3"
    process = cli("run", *small(), "--", "sh", "-c", program)
    assert process.stdout.readline() == b"one\n"
    yard.kill9()
    assert any(b"does not answer" in line for line in iter(process.stderr.readline, b""))
    yard.start()
    go.touch()
    code, out, _ = done(process)
    assert (code, out) == (3, b"two\n")


def test_detached_then_waited_for(cli):
    code, out, _ = done(cli("run", "-d", *small(), "--", "sh", "-c", "echo hello; exit 4"))
    assert code == 0
    job = out.decode().strip()
    assert done(cli("wait", job))[0] == 4
    assert done(cli("logs", job))[:2] == (0, b"hello\n")
    assert done(cli("logs", "-f", job))[:2] == (0, b"hello\n")
    assert "exit code 4" in done(cli("explain", job))[1].decode()


def test_a_misspelt_field(cli, tmp_path):
    (tmp_path / "bad.yaml").write_text("comand: true\n")
    code, _, err = done(cli("submit", "-f", "bad.yaml"))
    assert code == 5
    assert "Did you mean 'command'?" in err


def test_an_array_runs_every_index(cli, client):
    flags = small("--array", "1-5:2%1", "--name", "sweep")
    code, out, _ = done(
        cli("run", "-d", *flags, "--", "sh", "-c", "echo index=$RUNYARD_ARRAY_INDEX")
    )
    assert code == 0
    jobs = [client.wait(job, timeout=60) for job in out.decode().split()]
    assert [job.logs() for job in jobs] == [["index=1"], ["index=3"], ["index=5"]]


def test_the_demo_trains(cli):
    code, out, _ = done(cli("demo", "--time", "1s"))
    assert code == 0
    assert b"epoch 60/60 loss=" in out


def test_the_client_from_submit_to_receipt(client):
    job = client.submit(SMALL, command=["sh", "-c", "echo a; echo b; exec sleep 300"], grace_s=30)
    until(lambda: job.refresh().status == "running")
    lines = client.follow_logs(job.id)
    assert [next(lines), next(lines)] == ["a", "b"]
    answer = client.cancel(job.id, wait=30)
    assert answer["status"] == "cancelled"
    assert list(lines) == []
    assert client.receipt(job.id)["processes_ended"] >= 1
    assert job.refresh().exit_code == 143
    assert job.id in [found.id for found in client.jobs(status=["cancelled"])]
    assert job.retry().status not in ENDED
    client.force_kill(job.id, wait=30)
    client.delete(job.id)
    with pytest.raises(runyard.JobNotFound):
        job.refresh()


def test_submitting_twice_with_one_key_is_one_job(client):
    made = [client.submit(SMALL, command="true", idempotency_key="once") for _ in range(2)]
    assert made[0].id == made[1].id


def test_keys_and_roles(client, yard):
    made = client.create_key("guest", role="viewer")
    with runyard.Client(yard.url, made["secret"]) as guest:
        assert list(guest.jobs()) == []
        with pytest.raises(runyard.Forbidden):
            guest.submit(SMALL, command="true")
        client.revoke_key(made["key_id"])
        with pytest.raises(runyard.Unauthenticated):
            list(guest.jobs())


def test_run_from_python(client, capfdbinary):
    job = client.run(SMALL, command=["sh", "-c", "printf 'x\\377'; exit 2"])
    assert (job.status, job.exit_code) == ("failed", 2)
    assert capfdbinary.readouterr().out == b"x\xff"
