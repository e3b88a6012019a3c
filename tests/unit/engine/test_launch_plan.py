"""What an executor is asked to start: places, command and environment of an attempt."""

import os

import pytest

from yards import until


def launched(engine, **fields):
    ref = engine.submit("train --out {output_dir} --to {checkpoint_dir}", **fields)
    return ref, until(lambda: engine.executor.launches.get(f"{ref}.1"))


def assert_output(plan, output):
    assert plan.env["RUNYARD_OUTPUT_DIR"] == str(output)
    assert plan.env["RUNYARD_CHECKPOINT_DIR"] == str(output / "checkpoints")
    assert plan.make_dirs == (str(output), str(output / "checkpoints"))
    assert any(str(output) in word for word in plan.argv)


def test_an_output_path_is_seen_from_the_working_directory(engine, tmp_path):
    """As the program itself would see it, never from where the server was started."""
    _, plan = launched(engine, working_dir=str(tmp_path), output_path="results/run 1")
    assert plan.cwd == str(tmp_path)
    assert_output(plan, tmp_path / "results" / "run 1")


def test_an_absolute_output_path_is_taken_as_it_is(engine, tmp_path):
    _, plan = launched(engine, working_dir="/", output_path=str(tmp_path / "out"))
    assert plan.cwd == "/"
    assert_output(plan, tmp_path / "out")


def test_without_a_working_directory(engine):
    """Below the job's own place, in which it also runs."""
    ref, plan = launched(engine, output_path="results")
    own = engine.settings.data_dir / "outputs" / ref
    assert_output(plan, own / "results")
    assert plan.cwd == str(own / "results")


def test_without_anything(engine):
    ref, plan = launched(engine)
    own = engine.settings.data_dir / "outputs" / ref
    assert_output(plan, own)
    assert plan.cwd == str(own)


@pytest.mark.parametrize("name", ["RUNYARD_SECRET", "AWS_SECRET_ACCESS_KEY"])
def test_nothing_of_the_servers_environment(make_engine, monkeypatch, name):
    """It may hold secrets."""
    monkeypatch.setenv(name, "hunter2")
    _, plan = launched(make_engine())
    assert name not in plan.env
    assert plan.env["PATH"]
    assert plan.env["HOME"] != os.environ["HOME"]
