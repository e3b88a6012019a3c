"""Scalars out of event files: as they are written, half written, damaged."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from event_files import event, image, record, recorded, scalar, tensor, version
from runyard.domain.monitoring.series import Sample
from runyard.probes.tensorboard import TensorBoardFiles

AT = 1_790_000_000.5
ALL = 10**9


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "events.out.tfevents.1790000000.host.1.0"


def _read(path: Path, offset: int = 0, since: float = 0.0, most: int = ALL):
    return TensorBoardFiles().read(str(path), offset, since, most)


def test_scalars_of_both_kinds(path):
    path.write_bytes(
        version(AT)
        + event(AT, 1, scalar("train/loss", 0.5), scalar("lr", 0.25))
        + event(AT + 1, 2, tensor("loss", 1.5))
        + event(AT + 2, 300, tensor("packed", -2.5, packed=True))
        + event(AT + 3, 2**40, tensor("double", 0.1, double=True))
    )
    found = _read(path)
    assert found.samples == [
        Sample("train/loss", AT, 0.5, 1),
        Sample("lr", AT, 0.25, 1),
        Sample("loss", AT + 1, 1.5, 2),
        Sample("packed", AT + 2, -2.5, 300),
        Sample("double", AT + 3, 0.1, 2**40),
    ]
    assert found.offset == path.stat().st_size
    assert not found.more


def test_nan_and_infinity(path):
    values = [math.nan, math.inf, -math.inf]
    path.write_bytes(b"".join(event(AT, n, scalar("loss", v)) for n, v in enumerate(values)))
    assert [repr(one.value) for one in _read(path).samples] == ["nan", "inf", "-inf"]


def test_a_torn_tail_is_read_when_it_is_whole(path):
    first, second = event(AT, 1, scalar("loss", 0.5)), event(AT, 2, scalar("loss", 0.25))
    for cut in range(1, len(second)):
        path.write_bytes(first + second[:cut])
        found = _read(path)
        assert [one.step for one in found.samples] == [1]
        assert found.offset == len(first)
    path.write_bytes(first + second)
    assert [one.step for one in _read(path, len(first)).samples] == [2]


def test_a_part_at_a_time(path):
    path.write_bytes(b"".join(event(AT, n, scalar("loss", n)) for n in range(100)))
    offset, steps, more = 0, [], True
    while more:
        found = _read(path, offset, most=500)
        steps += [one.step for one in found.samples]
        offset, more = found.offset, found.more
    assert steps == list(range(100))


def test_what_is_no_scalar_is_stepped_over(path):
    path.write_bytes(
        event(AT, 1, image("sample", 5000))
        + record(b"\xff\xff\xff no message at all")
        + record(b"")
        + event(AT, 2, scalar("loss", 1.0))
    )
    assert [one.step for one in _read(path).samples] == [2]


def test_damage_ends_the_reading_of_a_file(path):
    """What follows a broken length cannot be found; nothing is invented."""
    whole = event(AT, 1, scalar("loss", 0.5))
    path.write_bytes(whole + b"\xff" * 100 + whole)
    found = _read(path)
    assert [one.step for one in found.samples] == [1]
    assert found.offset == path.stat().st_size
    path.write_bytes(os.urandom(10_000))
    assert _read(path).samples == []


def test_events_of_an_earlier_attempt_are_left_out(path):
    path.write_bytes(event(AT - 3600, 1, scalar("loss", 1)) + event(AT, 2, scalar("loss", 1)))
    assert [one.step for one in _read(path, since=AT - 1).samples] == [2]


def test_files_are_found_below_a_folder(tmp_path):
    runs = tmp_path / "runs" / "a"
    runs.mkdir(parents=True)
    new, old = runs / "events.out.tfevents.2.host", runs / "events.out.tfevents.1.host"
    for file in (new, old, tmp_path / "other.bin"):
        file.write_bytes(b"x")
    os.utime(old, (1000, 1000))
    os.mkfifo(tmp_path / "events.out.tfevents.pipe")
    assert TensorBoardFiles().find(str(tmp_path), 2000.0) == [str(new)]
    assert TensorBoardFiles().find(str(tmp_path / "none"), 0.0) == []


def test_a_folder_with_very_many_files_is_not_read_to_its_end(tmp_path):
    for number in range(200):
        (tmp_path / f"events.out.tfevents.{number}").write_bytes(b"x")
    assert len(TensorBoardFiles().find(str(tmp_path), 0.0)) == 64


def test_what_is_gone_or_no_file_is_empty(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("none", "pipe"):
        found = _read(tmp_path / name, 7)
        assert (found.samples, found.offset, found.more) == ([], 7, False)


def test_a_file_that_a_real_library_wrote(tmp_path):
    found = _read(recorded(tmp_path)).samples
    assert [(one.name, one.step) for one in found] == [("train/loss", n) for n in range(21)]
    assert [one.value for one in found[:20]] == [pytest.approx(1 / (n + 1)) for n in range(20)]
    assert math.isnan(found[20].value)
    assert [one.at for one in found] == [1_790_000_000 + n for n in range(21)]
