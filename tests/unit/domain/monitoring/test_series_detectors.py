"""Each detector finds its planted fault and is silent on a hundred healthy series (R15, R27)."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
import training_series
from training_series import SEEDS, T0, samples

from runyard.domain.monitoring import (
    disk_full,
    gpu_trouble,
    idle_gpu,
    loss_divergence,
    loss_plateau,
    loss_spike,
    memory_leak,
    not_finite,
    slow_down,
)
from runyard.domain.monitoring.alert import AlertLevel
from runyard.domain.monitoring.series import Sample

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
LOOK_EVERY = 7  # of the points: a detector looks while the series grows


def grown(series: list[Sample]):
    """The series as it is at each look, at most a thousand points of it."""
    for end in range(LOOK_EVERY, len(series) + 1, LOOK_EVERY):
        yield series[max(0, end - 1000) : end]


def alarms(find, series: list[Sample]) -> list:
    return [found for part in grown(series) if (found := find(part))]


def false_alarms(find, make, name: str) -> int:
    """Of a hundred healthy series, those with any alarm while they grew."""
    return sum(bool(alarms(find, samples(name, make(seed)))) for seed in SEEDS)


# loss


def test_healthy_losses_make_no_alarm():
    assert false_alarms(not_finite.find, training_series.healthy_loss, "loss") == 0
    assert false_alarms(loss_spike.find, training_series.healthy_loss, "loss") == 0
    assert false_alarms(loss_divergence.find, training_series.healthy_loss, "loss") == 0


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_losses_of_real_trainings_make_no_alarm(path):
    """What the programs in examples/ really told, one run each; some are very noisy."""
    told = json.loads(path.read_text())["losses"]
    series = [
        Sample("loss", T0 + 10.0 * place, loss, step) for place, (step, loss) in enumerate(told)
    ]
    for detector in (not_finite, loss_spike, loss_divergence):
        assert alarms(detector.find, series) == []


@pytest.mark.parametrize("fraction", [None, 0.5])
def test_falling_losses_are_no_plateau(fraction):
    """The whole run is looked at in steps, with what the detector would be given then."""

    def find(part: list[Sample]):
        return loss_plateau.find(part, fraction)

    assert false_alarms(find, training_series.healthy_loss, "loss") == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_lasting_spike_is_found(seed):
    values = training_series.healthy_loss(seed)[:400]
    values[300:304] = [value * 4 for value in values[300:304]]
    [found] = [loss_spike.find(samples("loss", values[:304]))]
    assert found is not None
    assert found.level is AlertLevel.WARNING
    assert found.params["step"] in range(3000, 3040)
    assert found.evidence["series"]["loss"]["values"]
    assert loss_spike.find(samples("loss", values)) is None, "over after it has fallen again"


def test_one_wild_value_is_a_spike_and_twice_the_usual_is_not():
    values = [1.0 + 0.01 * (place % 5) for place in range(60)]
    assert loss_spike.find(samples("loss", [*values, 50.0])) is not None
    assert loss_spike.find(samples("loss", [*values, 1.9])) is None
    assert loss_spike.find(samples("loss", [*values[:5], 50.0])) is None, "too early to tell"


@pytest.mark.parametrize("seed", range(20))
def test_a_diverging_loss_is_found(seed):
    chance = random.Random(seed)
    values = training_series.healthy_loss(seed)[:300]
    last = sum(values[-20:]) / 20
    rise = [last * (1 + place / 60) * (1 + 0.03 * chance.gauss(0, 1)) for place in range(150)]
    found = alarms(loss_divergence.find, samples("loss", values + rise))
    assert found
    assert found[0].level is AlertLevel.ERROR
    assert found[0].params["value"] > found[0].params["best"]


def test_a_loss_that_rises_from_its_first_step_diverges():
    values = [2.0 * 1.02**place for place in range(100)]
    assert alarms(loss_divergence.find, samples("loss", values))


@pytest.mark.parametrize("seed", range(20))
def test_a_plateau_is_found(seed):
    chance = random.Random(seed)
    values = [2.3 + 0.02 * chance.gauss(0, 1) for _ in range(500)]
    found = alarms(loss_plateau.find, samples("loss", values))
    assert found
    assert found[-1].params["seconds"] >= loss_plateau.AT_LEAST_S
    assert loss_plateau.find(samples("loss", values), 0.9) is None, "converged near its end"
    assert loss_plateau.find(samples("loss", values[:100])) is None, "too early"


# NaN and infinities


def test_nan_is_a_warning_once_and_an_error_when_it_stays():
    once = not_finite.find(samples("loss", [2.0, 1.9, math.nan]))
    assert once is not None
    assert (once.level, once.params["value"]) == (AlertLevel.WARNING, "NaN")
    twice = not_finite.find(samples("loss", [2.0, math.nan, math.inf]))
    assert twice is not None
    assert (twice.level, twice.params["step"]) == (AlertLevel.ERROR, 10)
    assert twice.evidence["series"]["loss"]["values"] == [2.0, "NaN", "Infinity"]


def test_skipped_steps_of_mixed_precision_are_healthy():
    norms = [1.0, math.inf, 1.0, 1.1, math.inf, math.inf, 0.9]
    assert not_finite.find(samples("grad_norm", norms)) is None
    assert not_finite.find(samples("grad_norm", [*norms, *[math.nan] * 5])) is not None


def test_only_metrics_that_must_be_finite_are_watched():
    watched = ["loss", "val_loss", "loss/value", "perplexity", "grad_norm"]
    assert all(map(not_finite.watches, watched))
    assert not any(map(not_finite.watches, ["val_map", "learning_rate", "epoch"]))


# memory


def leak_of(part: list[Sample], limit: float | None = 64_000.0):
    return memory_leak.find(part, started_at=T0, limit_mb=limit, kind="host")


def test_healthy_memory_makes_no_alarm():
    def found(seed: int) -> bool:
        series = samples("system.rss_mb", training_series.healthy_memory(seed))
        limit = 1.3 * max(sample.value for sample in series)
        return bool(alarms(lambda part: leak_of(part, limit), series))

    assert sum(map(found, SEEDS)) == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_leak_is_found_with_the_time_that_is_left(seed):
    chance = random.Random(seed)
    rate = chance.uniform(2, 20)  # MB per sample of ten seconds
    values = [8000 + rate * place + 30 * chance.gauss(0, 1) for place in range(1000)]
    series = samples("system.rss_mb", values)
    found = [(part, leak) for part in grown(series) if (leak := leak_of(part, 32_000))]
    assert found, "while there is time"
    for part, leak in found:
        truth = max(0.0, 32_000 - part[-1].value) / rate * 10
        assert leak.params["exhausted_in_s"] == pytest.approx(truth, rel=0.4, abs=60)


def test_the_nearer_the_end_the_graver():
    values = [8000.0 + 10 * place for place in range(300)]
    level = {limit: leak_of(samples("system.rss_mb", values), limit) for limit in
             (1_000_000, 20_000, 12_000, 11_100)}  # fmt: skip
    assert level[1_000_000] is None, "more than a day is left"
    assert level[20_000].level is AlertLevel.WARNING
    assert level[12_000].level is AlertLevel.ERROR
    assert level[11_100].level is AlertLevel.CRITICAL


# GPUs


def test_healthy_gpus_are_not_called_idle():
    def find(part: list[Sample]):
        return idle_gpu.find(part, now=part[-1].at, started_at=T0)

    assert false_alarms(find, training_series.healthy_util, "gpu.util") == 0


def test_an_idle_gpu_is_found_after_minutes_and_not_while_loading():
    values = [80.0] * 60 + [1.0] * 70
    series = samples("gpu.util", values)
    found = idle_gpu.find(series, now=series[-1].at, started_at=T0)
    assert found is not None
    assert found.params["util_percent"] == 1.0
    assert idle_gpu.find(series[:110], now=series[109].at, started_at=T0) is None
    loading = samples("gpu.util", [0.0] * 70)
    assert idle_gpu.find(loading, now=loading[-1].at, started_at=T0) is None


def test_gpu_errors_are_told_by_gravity():
    bus = gpu_trouble.find(gpu_trouble.GpuSeries(1, xid=samples("gpu.1.xid", [0, 0, 79])))
    assert bus is not None
    assert (bus.level, bus.params["xid"], bus.params["gpu"]) == (AlertLevel.CRITICAL, 79, 1)
    program = gpu_trouble.find(gpu_trouble.GpuSeries(0, xid=samples("gpu.0.xid", [31])))
    assert program is not None
    assert program.level is AlertLevel.WARNING
    ecc = gpu_trouble.find(gpu_trouble.GpuSeries(0, ecc_errors=samples("e", [2, 2, 3])))
    assert ecc is not None
    assert (ecc.params["kind"], ecc.params["errors"]) == ("ecc", 1)


@pytest.mark.parametrize(
    ("seen", "level", "told"),
    [
        ([0, 48, 45], AlertLevel.CRITICAL, 48),
        ([79, 0, 45, 0], AlertLevel.CRITICAL, 79),
        ([13, 45], AlertLevel.WARNING, 13),
        ([31, 0, 68, 45], AlertLevel.CRITICAL, 68),
        ([8], AlertLevel.WARNING, 8),
        ([94], AlertLevel.WARNING, 94),
        ([45, 63], AlertLevel.WARNING, 63),
        ([92, 13], AlertLevel.WARNING, 13),
    ],
)
def test_the_error_that_says_most_is_told(seen, level, told):
    """What only follows a fault never hides it, and numbers mean what they mean at an end."""
    found = gpu_trouble.find(gpu_trouble.GpuSeries(0, xid=samples("gpu.0.xid", seen)))
    assert found is not None
    assert (found.level, found.params["xid"]) == (level, told)


def test_what_follows_every_kill_is_no_trouble_of_a_gpu():
    assert gpu_trouble.find(gpu_trouble.GpuSeries(0, xid=samples("x", [0, 45, 45, 0]))) is None


def test_heat_is_told_when_it_lasts():
    hot = gpu_trouble.GpuSeries(0, throttled=samples("t", [0] * 5 + [1] * 13))
    assert gpu_trouble.find(hot) is not None
    short = gpu_trouble.GpuSeries(0, throttled=samples("t", [0] * 15 + [1] * 3))
    assert gpu_trouble.find(short) is None
    burning = gpu_trouble.GpuSeries(0, temperature=samples("t", [70, 97]))
    found = gpu_trouble.find(burning)
    assert found is not None
    assert found.level is AlertLevel.ERROR


def test_healthy_gpus_have_no_trouble():
    for seed in SEEDS:
        chance = random.Random(seed)
        known = chance.choice([0, 3])  # errors from before this server looked
        gpu = gpu_trouble.GpuSeries(
            0,
            xid=samples("x", [0.0] * 100),
            ecc_errors=samples("e", [known] * 100),
            throttled=samples("t", [float(chance.random() < 0.2) for _ in range(100)]),
            temperature=samples("c", [chance.uniform(30, 88) for _ in range(100)]),
        )
        assert gpu_trouble.find(gpu) is None


# pace and disk


def test_healthy_paces_are_not_called_slow():
    assert false_alarms(slow_down.find, training_series.healthy_rates, "steps_per_sec") == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_slow_down_is_found(seed):
    values = training_series.healthy_rates(seed)
    values[200:] = [value * 0.3 for value in values[200:]]
    found = alarms(slow_down.find, samples("steps_per_sec", values))
    assert found
    assert found[0].params["ratio"] < 0.6


def test_healthy_disks_make_no_alarm():
    assert false_alarms(disk_full.find, training_series.healthy_disk, "node.disk_free_gb") == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_disk_that_fills_is_foreseen(seed):
    chance = random.Random(seed)
    values = [200 - 0.2 * place + 0.3 * chance.gauss(0, 1) for place in range(400)]
    found = alarms(disk_full.find, samples("node.disk_free_gb", values))
    assert found
    truth = values[399] / 0.2 * 10
    assert found[-1].params["full_in_s"] == pytest.approx(truth, rel=0.25)


def test_checkpoints_that_pile_up_are_foreseen():
    values = [100.0 - 8 * (place // 60) for place in range(600)]
    assert alarms(disk_full.find, samples("node.disk_free_gb", values))


def test_a_disk_without_room_is_told_at_once():
    found = disk_full.find(samples("node.disk_free_gb", [0.1]))
    assert found is not None
    assert found.level is AlertLevel.CRITICAL


@pytest.mark.parametrize(
    "find",
    [
        not_finite.find, loss_spike.find, loss_divergence.find, loss_plateau.find, leak_of,
        slow_down.find, disk_full.find,
    ],
)  # fmt: skip
def test_absurd_series_do_not_break_a_detector(find):
    """Empty, one value, all the same moment, a clock set back, NaN and infinities only."""
    huge = [1e308, -1e308] * 200
    series = [
        [],
        samples("x", [1.0]),
        samples("x", [1.0] * 500, every=0.0),
        samples("x", [float(place) for place in range(500)], every=-10.0),
        samples("x", [math.nan] * 500),
        samples("x", [math.inf, -math.inf] * 250),
        samples("x", huge),
        samples("x", [0.0] * 500),
    ]
    for one in series:
        find(one)
