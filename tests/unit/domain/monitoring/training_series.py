"""Series as trainings make them, from a seed: healthy ones in many shapes, and planted faults."""

from __future__ import annotations

import math
import random

from runyard.domain.monitoring.series import Sample

T0 = 1_700_000_000.0
SEEDS = range(100)


def samples(name: str, values: list[float], every: float = 10.0, step: int = 10) -> list[Sample]:
    return [
        Sample(name, T0 + every * place, value, place * step) for place, value in enumerate(values)
    ]


def healthy_loss(seed: int, count: int = 1000) -> list[float]:
    """Falling by a power law to a floor of its own, with noise (normal or heavy-tailed), a warm-up
    in which it rises, restarts of the learning rate, and an epoch's end that shows."""
    chance = random.Random(seed)
    start, floor = chance.uniform(0.7, 11.0), chance.uniform(0.01, 0.3)
    power, scale = chance.uniform(0.2, 0.6), chance.uniform(5, 60)
    noise = chance.choice([0.005, 0.02, 0.05, 0.1])
    heavy = chance.random() < 0.3
    warm_up = chance.choice([0, 0, 20, 50])
    restart = chance.choice([0, 0, 150, 300])
    epoch = chance.choice([0, 0, 100])
    found = []
    for place in range(count):
        value = start * (floor + (1 - floor) * (1 + place / scale) ** -power)
        if place < warm_up:
            value *= 1 + 0.15 * math.sin(math.pi * place / warm_up)
        if restart and place > restart:
            value *= 1 + 0.2 * math.exp(-(place % restart) / 15)
        if epoch:
            value *= 1 - 0.03 * (place // epoch) / 10
        error = chance.gauss(0, 1)
        if heavy:
            error = chance.choice([-1, 1]) * chance.expovariate(1.0)
        found.append(value * max(0.1, 1 + noise * error))
    return found


def healthy_memory(seed: int, count: int = 1000) -> list[float]:
    """MB: a load, then level with noise; caches that fill; teeth of evaluations; steps when a
    larger batch comes."""
    chance = random.Random(seed)
    base, noise = chance.uniform(500, 60_000), chance.uniform(0.0005, 0.01)
    cache, full = chance.choice([0.0, 0.1, 0.4]), chance.uniform(20, 120)
    tooth = chance.choice([0, 0, 60, 150])
    steps = sorted(chance.sample(range(count), chance.choice([0, 0, 1, 3])))
    found = []
    for place in range(count):
        value = base * min(1.0, (place + 1) / 15)
        value += base * cache * (1 - math.exp(-place / full))
        if tooth and place % tooth < 12:
            value += base * 0.2
        value += base * 0.03 * sum(place >= step for step in steps)
        found.append(value * (1 + noise * chance.gauss(0, 1)))
    return found


def healthy_rates(seed: int, count: int = 300) -> list[float]:
    """Steps per second: a slow beginning, noise, lengths of sequences that vary, pauses."""
    chance = random.Random(seed)
    usual, noise = chance.uniform(0.02, 50), chance.choice([0.02, 0.1, 0.2])
    pause = chance.choice([0, 10, 25])
    drift = chance.uniform(-0.2, 0.2)
    found = []
    for place in range(count):
        rate = usual * (1 + drift * place / count) * math.exp(noise * chance.gauss(0, 1))
        if place < 4:
            rate *= 0.2
        if pause and place % pause == pause - 1:
            rate *= 0.1
        found.append(rate)
    return found


def healthy_util(seed: int, count: int = 400) -> list[float]:
    """Percent of a GPU: none while loading, then busy, with pauses of evaluations and saves."""
    chance = random.Random(seed)
    busy = chance.uniform(12, 98)
    pause, length = chance.choice([0, 40, 90]), chance.randint(2, 40)
    found = []
    for place in range(count):
        idle = place < 12 or (pause and place % pause < min(length, pause - 8))
        value = chance.uniform(0, 4) if idle else busy + chance.gauss(0, 8)
        found.append(min(100.0, max(0.0, value)))
    return found


def healthy_disk(seed: int, count: int = 400) -> list[float]:
    """GB free: logs that grow a little, checkpoints that come and go, other people's files."""
    chance = random.Random(seed)
    free = chance.uniform(40, 4000)
    size, every = chance.uniform(0.1, 8), chance.choice([20, 60, 180])
    keep = chance.randint(1, 3)
    found = []
    for place in range(count):
        saved = min(place // every, keep)
        saving = size if place >= every and place % every < 3 else 0.0
        others = 2 * math.sin(place / 70)
        found.append(free - 0.0005 * place - size * saved - saving + others)
    return found
