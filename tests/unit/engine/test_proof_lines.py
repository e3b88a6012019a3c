"""The log line that shows what was found, by number, as alerts carry it (R24)."""

from __future__ import annotations

import math

import pytest

from runyard.domain.monitoring import loss_spike, not_finite, stalled_training
from runyard.domain.monitoring.finding import Finding
from runyard.domain.monitoring.pace import Pace
from runyard.domain.monitoring.series import Sample
from runyard.domain.monitoring.stalled_training import Signs
from runyard.engine.watch import proof_lines


def loss_line(step, loss):
    return f"iter {step}: loss {loss}, time 12.00ms, mfu 3.00%"


@pytest.fixture
def log(tmp_path):
    def write(*lines, end="\n"):
        path = tmp_path / "out.log"
        path.write_text(end.join(lines) + end)
        return str(path)

    return write


def samples(values):
    return [Sample("loss", 1000.0 + step, value, step) for step, value in enumerate(values)]


def bad(values) -> Finding:
    found = not_finite.find(samples(values))
    assert found is not None
    return found


def line(path, finding):
    return proof_lines.of(path, finding).get("log_line")


def test_where_the_values_stopped_being_numbers(log):
    values = [1.0, math.nan, 0.9, 0.8, math.nan, math.nan]
    lines = ["loading", *[loss_line(step, value) for step, value in enumerate(values)], "saved"]
    shown = line(log(*lines), bad(values))
    assert shown == {"text": loss_line(4, "nan"), "number": 6}


def test_one_bad_value_among_good_ones(log):
    values = [1.0, math.inf, 0.9, 0.8]
    shown = line(log(*[loss_line(step, value) for step, value in enumerate(values)]), bad(values))
    assert (shown["number"], "inf" in shown["text"]) == (2, True)


def test_the_value_that_jumped(log):
    values = [1.0 + 0.01 * (step % 3) for step in range(40)] + [1.0, 9.123456789, 1.0]
    finding = loss_spike.find(samples(values))
    assert finding is not None
    shown = line(log(*[loss_line(step, value) for step, value in enumerate(values)]), finding)
    assert shown == {"text": loss_line(41, 9.123456789), "number": 42}


def test_the_last_step_before_a_stall(log):
    pace = Pace(0.0)
    for step in range(10):
        pace.note(step, "training", float(step))
    finding = stalled_training.find(pace, 10_000.0, 600.0, Signs())
    assert finding is not None
    said = [*[loss_line(step, 1.0) for step in range(10)], "still alive", "still alive"]
    assert line(log(*said), finding) == {"text": loss_line(9, 1.0), "number": 10}


def test_a_bar_is_one_line_of_which_the_state_counts(log):
    def bar(step, loss):
        return f" {step}%|####      | {step}/100 [00:10<00:50, 2.00it/s, loss={loss}]"

    states = "\r".join(bar(step, "nan" if step > 30 else 0.5) for step in range(25, 40))
    shown = line(log("begin", states), bad([1.0, math.nan, math.nan]))
    assert (shown["number"], shown["text"]) == (2, bar(31, "nan").strip())


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe" * 1000, b"nothing about it\n" * 5000])
def test_logs_that_do_not_show_it(tmp_path, content):
    path = tmp_path / "out.log"
    path.write_bytes(content)
    assert proof_lines.of(str(path), bad([math.nan, math.nan])) == {}
    assert proof_lines.of(str(tmp_path / "absent.log"), bad([math.nan, math.nan])) == {}


def test_numbers_count_from_the_start_of_a_long_log(log):
    many = [loss_line(step, 1.0) for step in range(50_000)]
    shown = line(log(*many, loss_line(50_000, "nan")), bad([1.0, math.nan]))
    assert shown["number"] == 50_001


def test_what_no_line_can_show_is_not_looked_for(log):
    assert proof_lines.of(log(loss_line(1, "nan")), Finding("memory_leak", "warning")) == {}
