"""The programs of examples/, run for real: what is read from their logs is what happened."""

from __future__ import annotations

import bisect
import itertools
import json
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from runyard.domain.progress.estimate import eta
from runyard.domain.progress.hints import from_command
from runyard.domain.progress.point import Checkpoint, Point
from runyard.domain.progress.reading import Reader
from runyard.domain.progress.reported import parse_line
from yards import until

EXAMPLES = Path(__file__).parents[2] / "examples"
STEPS = 150
# program: more arguments, how far its losses may be from their step
PROGRAMS = {
    "train_tqdm": ([], 25),  # an iterated bar knows its count only ten times a second
    "train_hf_style": ([], 0),
    "train_lightning_style": (["--max_epochs", "3"], 1),
    "train_keras_style": ([], 0),
    "train_json_lines": ([], 0),
    "train_nanogpt_style": (["--max_iters", str(STEPS)], 0),
    "train_epoch_loss": ([], 0),
}


@dataclass
class Run:
    points: list[Point]
    since: list[float]  # no point's line began to be written before this
    steps: list[tuple[float, int]]
    losses: list[tuple[int, float]]

    def truly_done(self, at: float) -> float:
        """Share of the steps that were done at a moment."""
        place = bisect.bisect_right(self.steps, (at, STEPS + 1))
        return place / len(self.steps)

    def left(self, at: float) -> tuple[float, float]:
        """Seconds that were left at a moment: as it came, and had the machine not stood still in
        between; the smaller one first."""
        moments = [moment for moment, _ in self.steps]
        gaps = sorted(after - before for before, after in itertools.pairwise(moments))[:-3]
        at_its_pace = statistics.mean(gaps) * (len(moments) - bisect.bisect(moments, at))
        first, second = sorted((moments[-1] - at, at_its_pace))
        return max(first, 1e-9), second


def run(program: str, folder: Path, sleep: float = 0.02) -> Run:
    """Read while it runs, as the engine does: bytes as they come, cut at \\r and \\n."""
    more, _ = PROGRAMS[program]
    truth = folder / "truth.json"
    command = [sys.executable, str(EXAMPLES / f"{program}.py"), "--steps", str(STEPS)]
    command += ["--sleep", str(sleep), "--truth", str(truth), *more]
    reader, points, since, rest = Reader(from_command(command)), [], [], b""
    read_at = begun_at = time.time()
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        output = process.stdout.fileno()
        while True:
            select.select([output], [], [])
            # We may be late with it; but none of it was written before the last block was read.
            before, read_at = read_at, time.time()
            if not (block := os.read(output, 65536)):
                break
            at = time.time()
            *lines, rest = re.split(rb"[\r\n]", rest + block)
            for line in lines:
                points += reader.feed(line.decode("utf-8", "replace"), at)
                since += [begun_at] * (len(points) - len(since))
                begun_at = before
        points += reader.feed(rest.decode("utf-8", "replace"), time.time())
        points += reader.finish()
        since += [begun_at] * (len(points) - len(since))
    assert process.returncode == 0
    record = json.loads(truth.read_text())
    steps = [(at, step) for at, step in record["steps"]]
    return Run(points, since, steps, [(step, loss) for step, loss in record["losses"]])


@pytest.mark.parametrize("program", PROGRAMS)
def test_progress_is_true(program, tmp_path):
    """R14: within one percent of the truth, as far as the program shows it at that moment."""
    seen = run(program, tmp_path)
    placed = [point for point in seen.points if point.fraction is not None]
    assert placed[-1].fraction == pytest.approx(1.0)
    fractions = [point.fraction for point in placed]
    assert fractions == sorted(fractions)
    # A bar is drawn ten times a second, a loop prints once per epoch: the truth of a moment ago.
    behind = 1.0 if program != "train_epoch_loss" else 1.5
    wrong = [
        (point, seen.truly_done(point.at))
        for point, since in zip(seen.points, seen.since, strict=True)
        if point.fraction is not None
        and not seen.truly_done(since - behind) - 0.01
        <= point.fraction
        <= seen.truly_done(point.at) + 0.01
    ]
    assert not wrong
    counted = [point for point in placed if point.step is not None]
    assert all(abs(point.fraction - point.step / STEPS) <= 0.01 for point in counted)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_losses_are_the_ones_written(program, tmp_path):
    """R14"""
    seen = run(program, tmp_path, sleep=0.005)
    off = PROGRAMS[program][1]
    if program == "train_epoch_loss":
        read = [(round(p.epoch), p.values["loss"]) for p in seen.points if "loss" in p.values]
    else:
        read = [(p.step, p.values["loss"]) for p in seen.points if "loss" in p.values]
    assert read
    if off == 0:
        assert read == [(step, pytest.approx(loss)) for step, loss in seen.losses]
        return
    # A bar shows a new loss while its counter still stands at the step before.
    far = [
        (step, loss)
        for step, loss in read
        if step is None
        or min((abs(step - true) for true, said in seen.losses if said == loss), default=99) > off
    ]
    assert not far


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_time_left_is_right_after_a_third(program, tmp_path):
    """R17: within a fifth. A machine that is busy at the wrong moment may spoil a run or two."""
    errors = []
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        seen = run(program, folder)
        samples = [(p.at, p.fraction) for p in seen.points if p.fraction is not None]
        part = [sample for sample in samples if sample[1] <= 0.36]
        found = eta(part, part[-1][0])
        assert found is not None
        assert found.low <= found.seconds <= found.high
        least, most = seen.left(part[-1][0])
        errors.append(max(1 - found.seconds / least, found.seconds / most - 1, 0))
        if errors[-1] <= 0.2:
            return
    pytest.fail(f"{errors}")


def test_a_program_that_tells_of_itself(tmp_path):
    """R15: reported steps and losses are the true ones; checkpoints are told."""
    metrics = tmp_path / "metrics.jsonl"
    lines, truth = tell(tmp_path, metrics)
    points = [line for line in lines if isinstance(line, Point) and line.values]
    assert [line.phase for line in lines if isinstance(line, Point) and line.phase] == [
        "saving"
    ] * 3
    assert [(p.step, p.values["loss"]) for p in points] == truth["losses"]
    assert points[-1].fraction == 1.0
    saved = [line for line in lines if isinstance(line, Checkpoint)]
    assert [checkpoint.step for checkpoint in saved] == [50, 100, 150]
    assert all(Path(checkpoint.path).is_file() for checkpoint in saved)


def tell(folder: Path, metrics: Path):
    command = [sys.executable, str(EXAMPLES / "train_report.py"), "--steps", str(STEPS)]
    subprocess.run(
        [*command, "--sleep", "0", "--truth", "truth.json"],
        cwd=folder,
        check=True,
        env={**os.environ, "RUNYARD_METRICS_FILE": str(metrics)},
    )
    lines = [parse_line(line, time.time()) for line in metrics.read_text().splitlines()]
    truth = json.loads((folder / "truth.json").read_text())
    return lines, {"losses": [(step, loss) for step, loss in truth["losses"]]}


def test_stopped_and_resumed(tmp_path):
    """R1, R39: SIGTERM saves a checkpoint, and the next attempt goes on from it."""
    metrics = tmp_path / "metrics.jsonl"
    environment = {**os.environ, "RUNYARD_METRICS_FILE": str(metrics)}
    command = [sys.executable, str(EXAMPLES / "train_report.py"), "--steps", "100000"]
    process = subprocess.Popen([*command, "--sleep", "0.01"], cwd=tmp_path, env=environment)
    try:
        until(lambda: metrics.exists() and len(metrics.read_text().splitlines()) > 5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    last = parse_line(metrics.read_text().splitlines()[-1], time.time())
    assert isinstance(last, Checkpoint)
    assert last.step is not None
    metrics.unlink()
    environment["RUNYARD_RESUME_FROM"] = last.path
    resumed = [*command[:3], str(last.step + 3), "--sleep", "0"]
    subprocess.run(resumed, cwd=tmp_path, env=environment, check=True)
    first = parse_line(metrics.read_text().splitlines()[0], time.time())
    assert isinstance(first, Point)
    assert first.step == last.step + 1
