"""Public ids of jobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.domain.ids import ALPHABET, job_ref
from runyard.wire.job_fields import is_job_ref


@given(st.binary(min_size=8, max_size=16))
def test_ids_are_readable_and_read_back(randomness):
    ref = job_ref(randomness)
    assert len(ref) == 16
    assert ref.startswith("job-")
    assert set(ref[4:]) <= set(ALPHABET)
    assert not set(ref[4:]) & set("ilou")
    assert is_job_ref(ref)


def test_different_bytes_different_ids():
    assert len({job_ref(number.to_bytes(8, "big")) for number in range(1000)}) == 1000


def test_too_little_randomness():
    with pytest.raises(ValueError, match="eight"):
        job_ref(b"short")
