"""Job ids and nearest names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.domain.ids import ALPHABET, job_ref, nearest, parse_attempt_id, parse_job_ref


@given(st.binary(min_size=8, max_size=16))
def test_ids_are_readable_and_read_back(randomness):
    ref = job_ref(randomness)
    assert len(ref) == 16
    assert ref.startswith("job-")
    assert set(ref[4:]) <= set(ALPHABET)
    assert not set(ref[4:]) & set("ilou")
    assert parse_job_ref(ref) == parse_job_ref(f" {ref.upper()}\n") == ref


def test_different_bytes_different_ids():
    assert len({job_ref(number.to_bytes(8, "big")) for number in range(1000)}) == 1000


def test_too_little_randomness():
    with pytest.raises(ValueError, match="eight"):
        job_ref(b"short")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("17", 17),
        ("job-0123456789ab", "job-0123456789ab"),
        ("JOB-O1234567I9AB", "job-0123456719ab"),
        ("job-123", None),
        ("job-0123456789a!", None),
        ("", None),
        ("-1", None),
        ("\u0661\u0662", None),
        ("../etc", None),
    ],
)
def test_reading_ids(text, meant):
    assert parse_job_ref(text) == meant


def test_attempt_ids():
    assert parse_attempt_id("job-0123456789ab.3") == ("job-0123456789ab", 3)
    assert parse_attempt_id("job-0123456789ab.0") is None
    assert parse_attempt_id("job-0123456789ab") is None


def test_nearest_name():
    fields = ["gpu_count", "gpu_type", "cpu_cores", "memory_gb"]
    assert nearest("gpus_count", fields) == "gpu_count"
    assert nearest("GPU_TYPES", fields) == "gpu_type"
    assert nearest("zzz", fields) is None
    assert nearest("x", []) is None
