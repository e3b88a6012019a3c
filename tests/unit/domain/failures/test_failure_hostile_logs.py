"""Whatever a log holds, it is classified without an exception and in a bounded time."""

from __future__ import annotations

import json
import time

from hypothesis import given, settings
from hypothesis import strategies as some

from runyard.domain.failures import fingerprint, scan
from runyard.domain.failures.catalogue import SIGNATURES
from runyard.domain.failures.classify import classify
from runyard.domain.failures.diagnosis import as_mapping
from runyard.domain.failures.evidence import Evidence, LastMetrics, LogLine, RankLog, lines_of

PIECES = [piece for signature in SIGNATURES for piece in signature.parts]
PREFIXES = [
    "",
    "[rank3]: ",
    "[default0]:",
    "E0626 05:14:36.39 12 a.cc:3] ",
    '  File "',
    "    ",
    "\r",
]
line = some.one_of(
    some.text(max_size=200),
    some.lists(some.sampled_from(PIECES), max_size=6).map(" ".join),
    some.tuples(
        some.sampled_from(PREFIXES), some.sampled_from([s.sample for s in SIGNATURES])
    ).map("".join),
    some.just("Traceback (most recent call last):"),
    some.just("During handling of the above exception, another exception occurred:"),
)
log = some.lists(line, max_size=40).map(
    lambda lines: tuple(LogLine(number, text) for number, text in enumerate(lines, 1))
)
evidence = some.builds(
    Evidence,
    exit_code=some.none() | some.integers(-70, 300),
    signal=some.none() | some.integers(0, 70),
    cause=some.sampled_from(["exited", "crashed", "oom", "cancelled", "timeout", "start_failed"]),
    stop_cause=some.none() | some.sampled_from(["user", "stall", "rule", "supervisor_term"]),
    oom_kills=some.integers(0, 2),
    logs=some.lists(some.builds(RankLog, some.integers(0, 3), log, log), max_size=3).map(tuple),
    metrics=some.builds(
        LastMetrics,
        step=some.none() | some.integers(0, 9),
        loss_finite=some.none() | some.booleans(),
    ),
    world_size=some.integers(1, 8),
)


@settings(deadline=None, max_examples=200)
@given(evidence)
def test_any_evidence_gives_a_diagnosis(given_evidence):
    found = classify(given_evidence)
    if found is not None:
        json.dumps(as_mapping(found))
        assert 0 < found.confidence <= 1
        assert found.fingerprint
        assert found.root is None or found.root in found.proof


def seconds(text, lines=1):
    tail = lines_of("\n".join([text] * lines))
    before = time.process_time()
    classify(Evidence(exit_code=1, logs=(RankLog(tail=tail),)))
    return time.process_time() - before


def test_a_large_log_takes_a_moment():
    """Far above what it needs, so that a slow machine passes and a quadratic pattern does not."""
    assert seconds("step 17 loss 0.31 lr 0.001 some ordinary words of a log", 200_000) < 10
    assert seconds("RuntimeError: CUDA error: device-side assert triggered", 200_000) < 10


def test_no_line_can_be_made_slow():
    for piece in PIECES:
        assert seconds(f"{piece} " * 2000) < 2
    for filling in ("a", "/", "(", "'", "0", "\x1b[", "loss is ", "Error: ", "-", "[rank", "x."):
        assert seconds(filling * 100_000) < 2
        fingerprint.of_line(filling * 100_000)


STATEMENTS = (
    'Exception in thread "', "Caused by: ", "ERROR: LoadError: ", "Error in f(", "Error: ", "panic: ",
    "thread 'main' panicked at '", "  what():  ", "terminate called after throwing an instance of '",
    "Flags parsing error: ", "[CUDA ERROR] at file ", "x.sh: line 3: ", "a.py:3: ", "train: ",
    "Unhandled exception. ", "F0311 04:12:10.551000 4711 a.cpp:43] ",
    '{"exc": "Traceback (most recent call last):',
)  # fmt: skip
FILLINGS = (
    "a", "a.", "a::", "A", "aB", ": ", "Error: ", "not found ", "checkpoint ", "out of memory on ",
    "loss is ", "--flag ", "[Errno ", "status 4", "\\n", "version ", "could not find ", "'/", "cuda ",
)  # fmt: skip


def test_no_statement_can_be_made_slow():
    for statement in STATEMENTS:
        for filling in FILLINGS:
            assert seconds(statement + filling * 5000) < 2
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n'
    for filling in FILLINGS:
        assert seconds(f"{trace}RuntimeError: {filling * 5000}") < 2
        assert seconds(f"{trace}{filling * 5000}: x") < 2


def test_a_line_of_many_megabytes():
    for filling in ("x", "Error: ", "é", "\x1b[0m", "\r"):
        assert seconds(filling * (10_000_000 // len(filling))) < 5


def test_thousands_of_tracebacks():
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nOddity: %d is odd'
    assert seconds("\n".join(trace % one for one in range(5000))) < 10


def test_only_so_many_lines_are_looked_at():
    many = tuple(LogLine(number, "x") for number in range(1, 20_001))
    seen = scan.texts(RankLog(0, many[:5000], many))
    assert len(seen) == scan.MOST_FIRST + scan.MOST_LAST
    assert (seen[0].number, seen[-1].number) == (1, 20_000)
