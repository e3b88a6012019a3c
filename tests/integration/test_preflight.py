"""Checks before a start, with a real server and real interpreters."""

import os
import sys
import time

from yards import Truth, until

CHECKED = {"preflight": True, "max_retries": 3}


def failed_at_once(yard, ref):
    """The reason's parameters, once it failed without an attempt."""
    job = yard.wait(ref, "failed")
    assert job["reason"]["code"] == "preparation_failed"
    assert job["reason"]["params"]["stage"] == "preflight"
    assert yard.attempts(ref) == []
    assert job["retry_count"] == 0
    return job["reason"]["params"]


def test_a_missing_module_fails_at_once(yard, tmp_path):
    """R39: before anything runs, without a retry, told with where it is imported."""
    script = tmp_path / "train.py"
    script.write_text("import json\nimport no_such_module_here\nopen('ran', 'w')\n")
    ref = yard.submit([sys.executable, "train.py"], working_dir=str(tmp_path), **CHECKED)
    params = failed_at_once(yard, ref)
    assert params["code"] == "module_missing"
    assert params["params"]["names"] == ["no_such_module_here"]
    assert (params["params"]["path"], params["params"]["line"]) == (str(script), 2)
    assert not (tmp_path / "ran").exists()
    shown = yard.job(ref)["preflight"]
    assert shown["verdict"] == "fail"
    told = yard.cli("explain", ref).stdout
    assert "has no module no_such_module_here" in told
    assert f"{script}:2" in told
    script.write_text("print('well')\n")
    yard.api("POST", f"/jobs/{ref}/retry")
    yard.wait(ref, "completed")
    assert yard.logs(ref) == ["well"]


def test_a_syntax_error_fails_at_once(yard, tmp_path):
    (tmp_path / "train.py").write_text("x = 1\nif x\n    pass\n")
    ref = yard.submit([sys.executable, "train.py"], working_dir=str(tmp_path), **CHECKED)
    params = failed_at_once(yard, ref)
    assert (params["code"], params["params"]["line"]) == ("syntax_error", 2)


def test_folders_that_cannot_be_used(yard, tmp_path):
    ref = yard.submit("true", working_dir=str(tmp_path / "gone"), **CHECKED)
    assert failed_at_once(yard, ref)["code"] == "cwd_missing"
    (tmp_path / "file").write_text("x")
    output = str(tmp_path / "file" / "out")
    ref = yard.submit("true", working_dir=str(tmp_path), output_path=output, **CHECKED)
    params = failed_at_once(yard, ref)
    assert params["code"] == "path_unwritable"
    assert params["params"]["path"] == output


def test_a_program_that_is_not_there(yard, tmp_path):
    for command in (["no-such-program"], "no-such-program --lr 1"):
        ref = yard.submit(command, working_dir=str(tmp_path), **CHECKED)
        assert failed_at_once(yard, ref)["code"] == "executable_missing"


def test_what_is_fine_starts_and_shows_what_was_checked(yard, tmp_path):
    """Also with the environment that the job will have."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "own_helper_module.py").write_text("word = 'found'\n")
    ref = yard.submit(
        [sys.executable, "-c", "import own_helper_module as m; print(m.word)"],
        env_vars={"PYTHONPATH": str(tmp_path / "lib")},
        **CHECKED,
    )
    job = yard.wait(ref, "completed")
    assert yard.logs(ref) == ["found"]
    assert job["preflight"]["verdict"] == "pass"
    assert {"command", "interpreter", "imports", "output", "disk"} <= {
        one["check"] for one in job["preflight"]["checks"]
    }
    events = [one["code"] for one in yard.ask(f"/jobs/{ref}/events")]
    assert events.index("preparation_ended") < events.index("job_started")


def test_without_it_nothing_is_checked(yard):
    ref = yard.submit([sys.executable, "-c", "import no_such_module_here"], max_retries=0)
    job = yard.wait(ref, "failed")
    assert job["preflight"] is None
    assert len(yard.attempts(ref)) == 1


def test_cancel_in_preflight_leaves_nothing(yard, tmp_path):
    """R1, R2: the check hangs in a slow interpreter; cancel ends all of it."""
    truth = Truth(tmp_path / "truth")
    slow = tmp_path / "python3"
    slow.write_text(f"#!/bin/sh\nexec 9>{truth.path}\ntouch {tmp_path}/up\nsleep 300\n")
    slow.chmod(0o755)
    ref = yard.submit([str(slow), "-c", "pass"], **CHECKED)
    until(lambda: os.path.exists(tmp_path / "up"))
    shown = yard.job(ref)
    assert (shown["status"], shown["stage"]) == ("pending", "preflight")
    assert truth.held()
    asked = time.monotonic()
    assert (
        yard.api("POST", f"/jobs/{ref}/cancel?wait=40", timeout=60).body["status"] == "cancelled"
    )
    assert time.monotonic() - asked < 40  # about a second on a quiet machine
    assert not truth.held()
    receipt = yard.ask(f"/jobs/{ref}/receipt")
    assert receipt["stage"] == "preflight"
    truth.close()
