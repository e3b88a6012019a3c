"""Amounts as people type them."""

import pytest

from runyard.cli import amounts
from runyard.cli.complaints import Complaint


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("1d", 86400),
        ("02:30", None),
        ("01:00:00", 3600),
        ("2-12", 216000),
        ("2-12:00", 216000),
        ("1-00:00:30", 86430),
        ("", None),
        ("soon", None),
        ("-5s", None),
        ("5 apples", None),
    ],
)
def test_spans_of_time(text, seconds):
    if seconds is None:
        with pytest.raises(Complaint):
            amounts.seconds(text, "--time")
    else:
        assert amounts.seconds(text, "--time") == seconds


@pytest.mark.parametrize(
    ("text", "gigabytes"),
    [
        ("32GB", 32),
        ("32G", 32),
        ("32", 32),
        ("512MB", 0.5),
        ("1.5GiB", 1.5),
        ("1TB", 1024),
        ("1024 kb", 1 / 1024),
        ("lots", None),
        ("-1GB", None),
        ("GB", None),
    ],
)
def test_memory(text, gigabytes):
    if gigabytes is None:
        with pytest.raises(Complaint):
            amounts.memory_gb(text, "--mem")
    else:
        assert amounts.memory_gb(text, "--mem") == gigabytes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2", (None, 2)),
        ("0", (None, 0)),
        ("0.5", (None, 0.5)),
        ("A100:2", ("A100", 2)),
        ("RTX 4090:2", ("RTX 4090", 2)),
        ("H100", ("H100", 1)),
        ("-x", None),
        ("-1", None),
        ("", None),
        ("A100:many", None),
    ],
)
def test_gpus(text, found):
    if found is None:
        with pytest.raises(Complaint):
            amounts.gpus(text, "--gpus")
    else:
        assert amounts.gpus(text, "--gpus") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0-3", ([0, 1, 2, 3], 0)),
        ("0-15%4", (list(range(16)), 4)),
        ("0-10:5", ([0, 5, 10], 0)),
        ("7,1,3-4", ([1, 3, 4, 7], 0)),
        ("5", ([5], 0)),
        ("3-1", None),
        ("0-3%0", None),
        ("a-b", None),
        ("0-99999999", None),
        ("", None),
    ],
)
def test_arrays(text, found):
    if found is None:
        with pytest.raises(Complaint):
            amounts.array(text, "--array")
    else:
        assert amounts.array(text, "--array") == found
