"""Arrays, spans of time and memory as people write them."""

from __future__ import annotations

import pytest

from runyard.domain import errors
from runyard.domain.arrays import MAX_ELEMENTS, ArraySpec, parse_array
from runyard.domain.quantities import parse_duration, parse_memory_gb


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("0-3", ArraySpec((0, 1, 2, 3))),
        ("0-15%4", ArraySpec(tuple(range(16)), 4)),
        ("1,3,5-7", ArraySpec((1, 3, 5, 6, 7))),
        ("7", ArraySpec((7,))),
        ("0-100:25", ArraySpec((0, 25, 50, 75, 100))),
        (" 5 , 1-2 % 2".replace(" % ", "%"), ArraySpec((1, 2, 5), 2)),
        ("3,1-4", ArraySpec((1, 2, 3, 4))),
        (f"1-{MAX_ELEMENTS}", ArraySpec(tuple(range(1, MAX_ELEMENTS + 1)))),
    ],
)
def test_arrays(text, spec):
    assert parse_array(text) == spec


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "neither an index nor a range"),
        ("a-b", "neither an index nor a range"),
        ("1-", "neither an index nor a range"),
        ("-3", "neither an index nor a range"),
        ("1,,2", "neither an index nor a range"),
        ("5-2", "ends before it begins"),
        ("0-9:0", "at least 1"),
        ("0-9%", "how many may run at once"),
        ("0-9%0", "how many may run at once"),
        ("0-9%x", "how many may run at once"),
        (f"0-{MAX_ELEMENTS}", "at most 10000 elements"),
        (f"0-{MAX_ELEMENTS - 1},20000", "at most 10000 elements"),
        ("0-99999999999", "an index is at most"),
    ],
)
def test_wrong_arrays(text, says):
    with pytest.raises(errors.BadRequest, match=says) as refused:
        parse_array(text)
    assert refused.value.params["field"] == "array"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("1d", 86400),
        ("1w", 604800),
        ("1h30m", 5400),
        ("1d 2h", 93600),
        ("1.5h", 5400),
        ("90", 90),
        (90, 90),
        (0.5, 0.5),
        ("01:30:00", 5400),
        ("100:00:00", 360000),
        ("1-12:00:00", 129600),
        ("1-12:30", 131400),
        ("2-06", 194400),
        (" 2H ", 7200),
    ],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "h", "-5s", "10:30", "1:99:00", "1:00:61", "5 parsecs", "30m1h", "1h1h", "1h 30", "nan"],
)
def test_wrong_durations(text):
    with pytest.raises(errors.BadRequest, match="is not a span of time"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "gb"),
    [
        ("32GB", 32),
        ("32", 32),
        (32, 32),
        ("32g", 32),
        ("32GiB", 32),
        ("512MB", 0.5),
        ("1.5TB", 1536),
        ("1048576k", 1),
        ("1073741824B", 1),
        (" 8 GB ", 8),
    ],
)
def test_memory(text, gb):
    assert parse_memory_gb(text) == gb


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "32PB", "3 2GB", "lots"])
def test_wrong_memory(text):
    with pytest.raises(errors.BadRequest, match="is not an amount of memory"):
        parse_memory_gb(text)
