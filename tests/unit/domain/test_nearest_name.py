"""Did you mean ...?"""

from __future__ import annotations

import pytest

from runyard.domain.nearest_name import nearest

FIELDS = ["gpu_count", "gpu_type", "cpu_cores", "memory_gb"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [("gpus_count", "gpu_count"), ("GPU_TYPES", "gpu_type"), ("zzz", None), ("", None)],
)
def test_the_nearest_name_if_any_is_near(word, meant):
    assert nearest(word, FIELDS) == meant


def test_names_are_given_as_they_are_written():
    assert nearest("SHOW", ["Shown"]) == "Shown"
    assert nearest("x", []) is None
