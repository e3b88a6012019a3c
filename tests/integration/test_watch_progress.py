"""Unmodified training programs as jobs: their progress, losses and time left are true."""

from __future__ import annotations

import bisect
import itertools
import json
import math
import statistics
import sys
import time
from pathlib import Path

import pytest

from yards import until

EXAMPLES = Path(__file__).parents[2] / "examples"
STEPS = 200
# program -> more arguments, how far a loss may be from its step
PROGRAMS = {
    "train_tqdm": ([], 25),
    "train_hf_style": ([], 0),
    "train_lightning_style": (["--max_epochs", "4"], 1),
    "train_keras_style": ([], 0),
    "train_json_lines": ([], 0),
    "train_nanogpt_style": (["--max_iters", str(STEPS)], 0),
    "train_epoch_loss": ([], 0),
    "train_report": ([], 0),
}
SLEEP_S = 0.04  # a run takes eight seconds or more


def submit(yard, program: str, truth: Path, steps: int = STEPS, sleep: float = SLEEP_S) -> str:
    command = [sys.executable, str(EXAMPLES / f"{program}.py"), "--steps", str(steps)]
    command += ["--sleep", str(sleep), "--truth", str(truth), *PROGRAMS[program][0]]
    return yard.submit(command, name=program)


def watch(yard, jobs: dict[str, str]) -> dict[str, list[tuple[float, float, dict]]]:
    """What each job said of itself, moment by moment, until all have ended; with when it was
    asked and when it had answered."""
    seen: dict[str, list[tuple[float, float, dict]]] = {program: [] for program in jobs}
    left = set(jobs)

    def all_ended() -> bool:
        for program in sorted(left):
            asked = time.time()
            now = yard.job(jobs[program])
            seen[program].append((asked, time.time(), now))
            if now["status"] == "running":
                continue
            if now["status"] in ("completed", "failed", "cancelled"):
                assert now["status"] == "completed", yard.logs(jobs[program])[-20:]
                left.discard(program)
        return not left

    until(all_ended, 120, lambda: f"still going: {left}", every=0.25)
    return seen


def done_at(steps: list[tuple[float, int]], at: float) -> float:
    return bisect.bisect_right(steps, (at, math.inf)) / len(steps)


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """All programs at once, each with what it said while it ran, its truth and its series."""
    from yards import RunningYard

    folder = tmp_path_factory.mktemp("watch")
    yard = RunningYard(folder / "yard", max_concurrent=len(PROGRAMS)).start()
    try:
        truths = {program: folder / f"{program}.json" for program in PROGRAMS}
        jobs = {program: submit(yard, program, truths[program]) for program in PROGRAMS}
        seen = watch(yard, jobs)
        found = {}
        for program, job in jobs.items():
            truth = json.loads(truths[program].read_text())
            until(
                lambda job=job: "loss" in yard.ask(f"/jobs/{job}/metrics")["series"], words=program
            )
            until(lambda job=job: yard.job(job)["metrics"], words=program)
            found[program] = (seen[program], truth, job)
        yield yard, found
    finally:
        yard.stop()


@pytest.mark.parametrize("program", PROGRAMS)
def test_progress_is_true_while_it_runs(watched, program):
    """R14: within one percent of the truth at some moment of the last seconds."""
    seen, truth, _ = watched[1][program]
    steps = [(at, step) for at, step in truth["steps"]]
    told = [(*when, now["progress"]) for *when, now in seen if now["status"] == "running"]
    percents = [percent for *_, percent in told]
    assert percents == sorted(percents), "it never goes back"
    assert max(percents) > 50
    assert all(percent < 100 for percent in percents)
    late = 6.0  # read once a second, written at most as often, on a busy machine
    wrong = [
        (asked, at, percent, 100 * done_at(steps, at))
        for asked, at, percent in told
        if percent
        and not 100 * done_at(steps, asked - late) - 1 <= percent <= 100 * done_at(steps, at) + 1
    ]
    assert not wrong
    assert seen[-1][-1]["progress"] == 100


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_loss_series_is_the_one_written(watched, program):
    """R14"""
    yard, found = watched
    _, truth, job = found[program]
    written = [(step, loss) for step, loss in truth["losses"]]

    def series():
        return yard.ask(f"/jobs/{job}/metrics?keys=loss&points=10000")["series"]["loss"]

    # Bars are drawn ten times a second at most, so they do not show every loss.
    least = len(written) if PROGRAMS[program][1] == 0 else 10
    until(lambda: len(series()["values"]) >= least, words=program)
    loss = series()
    assert not loss["sampled"]
    assert loss["times"] == sorted(loss["times"])
    read = list(zip(loss["steps"], loss["values"], strict=True))
    off = PROGRAMS[program][1]
    if program == "train_epoch_loss":
        assert [value for _, value in read] == [pytest.approx(loss) for _, loss in written]
    elif off == 0:
        assert read == [(step, pytest.approx(loss)) for step, loss in written]
    else:
        by_step = dict(written)
        for step, value in read:
            near = [by_step[s] for s in range(step - off, step + off + 1) if s in by_step]
            assert any(value == pytest.approx(one, abs=2e-3) for one in near), (step, value)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_time_left_is_about_right_after_a_third(watched, program):
    """R14: the middle one of all forecasts is within 20 % of the time it took, or of what it would
    have taken had the machine not stood still in between."""
    seen, truth, _ = watched[1][program]
    moments = [at for at, _ in truth["steps"]]
    begun, ended = moments[0], moments[-1]
    gaps = sorted(after - before for before, after in itertools.pairwise(moments))[:-3]
    third = begun + (ended - begun) / 3
    errors = []
    for _, at, now in seen:
        if now["status"] == "running" and now["eta"] and third <= at < ended:
            eta = now["eta"]
            assert 0 <= eta["low"] <= eta["seconds"] <= eta["high"]
            at_its_pace = statistics.mean(gaps) * (len(moments) - bisect.bisect(moments, at))
            true = sorted((ended - at, at_its_pace))
            off = max(true[0] - eta["seconds"], eta["seconds"] - true[1], 0)
            errors.append(off / (ended - begun))
    assert errors, "no time left was told"
    assert sorted(errors)[len(errors) // 2] < 0.2


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_newest_metrics_and_the_use_of_time_are_told_with_the_job(watched, program):
    """R14"""
    yard, found = watched
    _, truth, job = found[program]
    now = yard.job(job)
    assert now["metrics"]["loss"] == pytest.approx(truth["losses"][-1][1], abs=2e-3)
    spent = now["efficiency"]
    losses = spent["losses"]
    assert spent["productive_s"] + sum(losses.values()) == pytest.approx(spent["wall_s"], abs=0.1)
    if program != "train_epoch_loss":  # it tells no steps
        assert 0.1 < spent["ratio"] <= 1


def test_a_server_that_is_killed_and_comes_back_has_every_point_once(tmp_path, make_yard):
    """R14: neither lost nor doubled, whatever was being written."""
    yard = make_yard("--on-shutdown", "keep").start()
    truths = {
        program: tmp_path / f"{program}.json" for program in ("train_json_lines", "train_report")
    }
    jobs = {program: submit(yard, program, truths[program], sleep=0.1) for program in truths}
    for job in jobs.values():
        until(lambda job=job: yard.job(job)["progress"] > 10, 60)
    for _ in range(2):
        yard.kill9()
        time.sleep(0.3)
        yard.start()
        assert goes_on(yard, list(jobs.values()))
    for program, job in jobs.items():
        yard.wait(job, "completed", seconds=60)
        written = [(s, loss) for s, loss in json.loads(truths[program].read_text())["losses"]]

        many = len(written)
        until(lambda job=job, many=many: len(losses(yard, job)) >= many, words=program)
        assert losses(yard, job) == [(step, pytest.approx(loss)) for step, loss in written]


def losses(yard, job: str) -> list[tuple[int, float]]:
    found = yard.ask(f"/jobs/{job}/metrics?keys=loss&points=10000")["series"]["loss"]
    return list(zip(found["steps"], found["values"], strict=True))


def goes_on(yard, jobs: list[str]) -> bool:
    """One of them comes further, or is at its end already."""
    before = {job: yard.job(job)["progress"] for job in jobs}

    def further(job: str) -> bool:
        return (now := yard.job(job))["progress"] > before[job] or now["status"] == "completed"

    return until(lambda: any(further(job) for job in jobs))
