"""Flags of a command: found in any form, changed in place, and the rest left as it was written."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from runyard.domain.recovery import command_flags, shell_words
from runyard.domain.recovery.command_flags import Role


@pytest.mark.parametrize(
    ("command", "role", "written", "value"),
    [
        ("python t.py --batch-size 32", Role.BATCH, "--batch-size", "32"),
        ("python t.py --batch_size=32 --lr 1e-3", Role.BATCH, "--batch_size", "32"),
        ("python t.py --batch_size=32 --lr 1e-3", Role.LEARNING_RATE, "--lr", "1e-3"),
        (
            "t --per_device_train_batch_size 8 --batch_size 64",
            Role.BATCH,
            "--per_device_train_batch_size",
            "8",
        ),
        ("t --micro_batch_size 4 --global-batch-size 64", Role.BATCH, "--micro_batch_size", "4"),
        (
            "t --micro_batch_size 4 --global-batch-size 64",
            Role.GLOBAL_BATCH,
            "--global-batch-size",
            "64",
        ),
        ("t -b 16 -j 4", Role.BATCH, "-b", "16"),
        ("t -b 16 -j 4", Role.WORKERS, "-j", "4"),
        ("t --data.batch_size=16", Role.BATCH, "--data.batch_size", "16"),
        (
            "t trainer.accumulate_grad_batches=2",
            Role.ACCUMULATION,
            "trainer.accumulate_grad_batches",
            "2",
        ),
        ("BATCH_SIZE=8 ./t.sh", Role.BATCH, "BATCH_SIZE", "8"),
        ("t --batch-size 8 --batch-size 16", Role.BATCH, "--batch-size", "16"),
        ("t --batch-size '8'", Role.BATCH, "--batch-size", "8"),
        ("cd x && t --num_workers 8 | tee log", Role.WORKERS, "--num_workers", "8"),
        (
            ["t", "--gradient_accumulation_steps", "2"],
            Role.ACCUMULATION,
            "--gradient_accumulation_steps",
            "2",
        ),
        (["bash", "-c", "t --batch-size 8"], Role.BATCH, "--batch-size", "8"),
        (["bash", "-lc", "t --batch-size 8"], Role.BATCH, "--batch-size", "8"),
        ("torchrun --master_port 29500 t.py", Role.PORT, "--master_port", "29500"),
        ("t --rdzv-endpoint=localhost:29400", Role.PORT, "--rdzv-endpoint", "localhost:29400"),
        ("t \\\n  --batch-size 8 \\\n  --lr 2", Role.BATCH, "--batch-size", "8"),
    ],
)
def test_flags_are_found(command, role, written, value):
    found = command_flags.find(command, role)
    assert (found.written, found.value) == (written, value)


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("python t.py --eval_batch_size 8 --warmup 2", Role.BATCH),
        ("t --batch-size $BATCH", Role.BATCH),
        ("t --batch-size `nproc`", Role.BATCH),
        ("t --batch-size --lr 3", Role.BATCH),
        ("t --batch-size", Role.BATCH),
        ("t # --batch-size 8", Role.BATCH),
        ("t --b 8", Role.BATCH),
        ("t --min_lr 3 --lr_scheduler cosine", Role.LEARNING_RATE),
        ("", Role.BATCH),
        ([], Role.BATCH),
    ],
)
def test_what_only_looks_like_one(command, role):
    assert command_flags.find(command, role) is None


@pytest.mark.parametrize(
    ("command", "values", "after"),
    [
        ("t --batch-size 32 --x 32", {"--batch-size": "16"}, "t --batch-size 16 --x 32"),
        ("t --batch-size=32", {"--batch-size": "16"}, "t --batch-size=16"),
        (
            't --batch-size "32"  && echo "a  b"',
            {"--batch-size": "16"},
            't --batch-size "16"  && echo "a  b"',
        ),
        ("t '--batch-size=32'", {"--batch-size": "16"}, "t '--batch-size=16'"),
        ("t --bs 8 --bs 4", {"--bs": "2"}, "t --bs 2 --bs 2"),
        ("t --lr 3e-4 # --lr 3e-4", {"--lr": "0.00015"}, "t --lr 0.00015 # --lr 3e-4"),
        ("t --url tcp://h:1", {"--url": "a b"}, "t --url 'a b'"),
        (("t", "--lr", "1"), {"--lr": "0.5"}, ("t", "--lr", "0.5")),
        (("t", "--lr=1"), {"--lr": "0.5"}, ("t", "--lr=0.5")),
        (("sh", "-c", "t --lr 1; echo"), {"--lr": "2"}, ("sh", "-c", "t --lr 2; echo")),
        ("t --lr 1", {"--other": "2"}, "t --lr 1"),
    ],
)
def test_a_value_is_changed_in_place(command, values, after):
    assert command_flags.with_values(command, values) == after


def test_one_more_flag():
    text = command_flags.with_inserted("t --bs 8 x", "--acc", "2", "--bs")
    assert text == "t --bs 8 --acc 2 x"
    assert command_flags.with_inserted("t --bs=8 x", "--acc", "2", "--bs") == "t --bs=8 --acc 2 x"
    parts = command_flags.with_inserted(("t", "--bs", "8", "x"), "--acc", "2", "--bs")
    assert parts == ("t", "--bs", "8", "--acc", "2", "x")
    assert command_flags.with_inserted("t", "--acc", "2", "--bs") == "t"


@settings(deadline=None)
@given(some.lists(some.text(alphabet="ab '\"\\$-=#;1", max_size=6), max_size=6))
def test_words_are_those_a_real_shell_sees(given_words):
    text = " ".join(shlex.quote(word) for word in given_words)
    assert [word.text for word in shell_words.words(text)] == given_words
    said = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\n' {text}"] if given_words else ["true"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said == "".join(f"{word}\n" for word in given_words)


@settings(deadline=None)
@given(some.text(max_size=200) | some.text(alphabet="ab '\"\\$`-=#;|&(){}1\n", max_size=80))
def test_any_text_is_read_and_left_alone(text):
    for word in shell_words.words(text):
        assert text[word.start : word.end] == word.raw
    assert command_flags.with_values(text, {}) == text
    for flag in command_flags.flags(text):
        if flag.value:
            command_flags.with_values(text, {flag.written: "7"})
