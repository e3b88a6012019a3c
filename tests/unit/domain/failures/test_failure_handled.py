"""Errors that are only told of: quoted, mentioned, survived, or said after an interrupt."""

from __future__ import annotations

import pytest

from runyard.domain.failures import handled, log_text
from runyard.domain.failures.categories import Category
from runyard.domain.failures.classify import classify
from runyard.domain.failures.evidence import Evidence, RankLog, lines_of

OUT_OF_MEMORY = "CUDA out of memory. Tried to allocate 2.00 GiB"
KEY_ERROR = """Traceback (most recent call last):
  File "/w/train.py", line 9, in <module>
    x = batch["mask"]
KeyError: 'mask'"""


def read(*lines):
    return [log_text.read(number, line) for number, line in enumerate(lines, 1)]


def named(text, exit_code=1):
    found = classify(Evidence(exit_code=exit_code, logs=(RankLog(tail=lines_of(text)),)))
    return found.category, found.root


@pytest.mark.parametrize(
    "line",
    [
        f'sample 3 prompt: "{OUT_OF_MEMORY}"',
        f"[eval] question: {OUT_OF_MEMORY}",
        f"{{'instruction': '{OUT_OF_MEMORY}', 'output': 'less'}}",
        f'{{"id": 7, "text": "{OUT_OF_MEMORY}"}}',
        f"    {OUT_OF_MEMORY}",
        f"user: {OUT_OF_MEMORY}",
    ],
)
def test_texts_that_a_program_works_on_are_quotations(line):
    """R18"""
    assert handled.quoted(*read(line))
    category, root = named(f"{line}\n{KEY_ERROR}")
    assert category is Category.CODE
    assert root.text == "KeyError: 'mask'"


@pytest.mark.parametrize(
    "line",
    [
        OUT_OF_MEMORY,
        f"error: {OUT_OF_MEMORY}",
        f'{{"level": "error", "message": "{OUT_OF_MEMORY}"}}',
        f"rank 3: {OUT_OF_MEMORY}",
        f"ERROR: step 4: {OUT_OF_MEMORY}",
    ],
)
def test_what_a_program_says_itself_is_not(line):
    """R18"""
    assert not handled.quoted(*read(line))
    assert named(line)[0] is Category.GPU_OOM


@pytest.mark.parametrize(
    ("line", "mentioned"),
    [
        ('If you hit "CUDA out of memory", lower the batch size', True),
        ('checks: no "CUDA out of memory" so far', True),
        ("set this to avoid CUDA out of memory errors", True),
        ("loading may fail with 'CUDA out of memory'", True),
        ('failed with "CUDA out of memory"', False),
        ("RuntimeError: CUDA out of memory", False),
        ("CUDA out of memory", False),
    ],
)
def test_what_might_be_is_not_what_was(line, mentioned):
    assert handled.mentioned(line, "CUDA out of memory") is mentioned


@pytest.mark.parametrize(
    "after",
    [
        "Batch size 64 failed, trying batch size 48",
        "Retrying in 1s [Retry 1/5].",
        "falling back to the other allocator",
        "skipping this batch",
        "recovered, resuming normal operation",
    ],
)
def test_how_it_went_on_is_said_below(after):
    """R18"""
    lines = read(OUT_OF_MEMORY, after, "epoch 1")
    assert handled.went_on(lines, 0)
    # Without anything else, it is still the best that is known.
    assert named(f"{OUT_OF_MEMORY}\n{after}")[0] is Category.GPU_OOM


@pytest.mark.parametrize(
    "lines",
    [
        (f"{OUT_OF_MEMORY}, not retrying", "done"),
        (OUT_OF_MEMORY, "retrying failed 3 times, giving up"),
        (OUT_OF_MEMORY, "    skipped = retrying(batch)  # source of a traceback"),
        (OUT_OF_MEMORY, "[rank1]: retrying"),
    ],
)
def test_words_of_others_do_not_count(lines):
    assert not handled.went_on(read(*lines), 0)


def test_the_last_exception_ended_it_whatever_is_said_after():
    """R20"""
    text = f"wandb: Network error (ConnectTimeout), entering retry loop.\n{KEY_ERROR}"
    category, root = named(f"{text}\nwandb: retrying in 3 s")
    assert category is Category.CODE
    assert root.number == 5


def test_a_traceback_that_a_logger_wrote_before_going_on():
    """R18"""
    logged = f"""ERROR:trainer:bad batch, skipping it
Traceback (most recent call last):
  File "/w/train.py", line 5, in step
    loss.backward()
torch.OutOfMemoryError: {OUT_OF_MEMORY}"""
    assert named(f"{logged}\n{KEY_ERROR}")[0] is Category.CODE
    assert named(logged)[0] is Category.GPU_OOM


@pytest.mark.parametrize("code", [130, -2])
def test_after_an_interrupt_nothing_is_a_cause(code):
    """R18: and what was said before it still is one."""
    after = "^C\nConnectionError: HTTPSConnectionPool(host='h', port=443): Read timed out."
    category, root = named(f"step 1\n{after}\nKeyboardInterrupt", code)
    assert category is Category.EXTERNAL_STOP
    assert root.text == "^C"
    failed = f"{KEY_ERROR}\nwaiting for the other ranks\n^C\nKeyboardInterrupt"
    assert named(failed, code)[0] is Category.CODE


def test_a_log_that_is_indented_as_a_whole_is_no_quotation():
    """R18"""
    text = f"loading\n{KEY_ERROR}\nwandb: Network error (ConnectTimeout), entering retry loop."
    moved = "\n".join(f"    {line}" for line in text.split("\n"))
    category, root = named(moved)
    assert category is Category.CODE
    assert root.text == "KeyError: 'mask'"
