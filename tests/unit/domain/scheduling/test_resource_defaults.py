"""From what a person asked for to a request."""

from __future__ import annotations

import math

import pytest

from runyard.domain import errors
from runyard.domain.job import Wanted
from runyard.domain.resources import Capacity, Gpu, Request
from runyard.domain.scheduling.defaults import fair_share, request_for

LARGE = Capacity(64_000, 256 * 1024, (Gpu(0, "GPU-0", "H100", 80000),))
LAPTOP = Capacity(2_000, 8 * 1024)


def asked(capacity=LAPTOP, max_concurrent=2, **wanted):
    return request_for(Wanted(**wanted), capacity=capacity, max_concurrent=max_concurrent)


def test_defaults_are_a_fair_share():
    assert asked() == Request(1000, 4096, 0)
    assert asked(LARGE) == Request(4000, 16 * 1024, 1000)
    assert asked(LARGE, 100) == Request(640, 2621, 1000)


def test_defaults_always_fit_together():
    for slots in (0, 1, 2, 7, 5000):
        share = fair_share(LAPTOP, slots)
        assert share.cpu_milli * max(1, slots) <= max(2000, slots)
        assert share.cpu_milli >= 1
        assert share.memory_mb >= 1


def test_what_was_asked_is_never_clamped():
    """R33."""
    assert asked(cpu_cores=64, memory_gb=500, gpu_count=8) == Request(64_000, 512_000, 8000)


def test_fractions():
    assert asked(cpu_cores=0.5, memory_gb=1.5, gpu_count=0.25) == Request(500, 1536, 250)
    assert asked(cpu_cores=0.1 + 0.2, memory_gb=0.001).cpu_milli == 300
    assert asked(cpu_cores=0.00001).cpu_milli == 1
    assert asked(gpu_count=1.0).gpu_milli == 1000


def test_zero_is_allowed():
    assert asked(LARGE, cpu_cores=0, memory_gb=0, gpu_count=0) == Request(0, 0, 0)


def test_gpu_type():
    assert asked(gpu_type="RTX 4090") == Request(1000, 4096, 1000, "RTX 4090")
    assert asked(gpu_type="  ").gpu_type is None
    assert asked(gpu_type="A100", gpu_count=0).gpu_type is None
    assert asked(gpu_type="A100", gpu_count=0.5).gpu_milli == 500


def test_ports_pass_through():
    assert asked(port_count=3).port_count == 3


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("cpu_cores", -1, "negative"),
        ("cpu_cores", 4097, "too_large"),
        ("cpu_cores", math.nan, "not_a_number"),
        ("cpu_cores", math.inf, "too_large"),
        ("cpu_cores", True, "not_a_number"),
        ("cpu_cores", "4", "not_a_number"),
        ("memory_gb", -0.1, "negative"),
        ("memory_gb", 64 * 1024 + 1, "too_large"),
        ("gpu_count", -1, "negative"),
        ("gpu_count", 4097, "too_large"),
        ("gpu_count", 1.5, "not_whole"),
        ("port_count", -1, "out_of_range"),
        ("port_count", 1001, "out_of_range"),
        ("port_count", True, "out_of_range"),
    ],
)
def test_nonsense_is_refused(field, value, code):
    with pytest.raises(errors.InvalidJob) as refused:
        asked(**{field: value})
    [problem] = refused.value.params["fields"]
    assert problem["field"] == {"port_count": "ports"}.get(field, field)
    assert problem["code"] == code
    assert problem["field"] in refused.value.message


def test_the_largest_allowed_values_pass():
    request = asked(cpu_cores=4096, memory_gb=64 * 1024, gpu_count=4096)
    assert request == Request(4_096_000, 64 * 1024 * 1024, 4_096_000)


def test_all_wrong_fields_are_named_at_once():
    with pytest.raises(errors.InvalidJob) as refused:
        asked(cpu_cores=-1, memory_gb=-1, gpu_count=-1)
    assert len(refused.value.params["fields"]) == 3
