"""Every signature is known by its sample, and none of them can be made slow."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from runyard.domain.failures import (
    class_words,
    error_numbers,
    handled,
    log_text,
    manner_words,
    meaning,
    message_words,
    scan,
    statement,
    tracebacks,
    xid,
)
from runyard.domain.failures.catalogue import SIGNATURES
from runyard.domain.failures.categories import Category, FailureType, failure_type
from runyard.domain.failures.evidence import RankLog, lines_of
from runyard.domain.failures.signature import Kind

UNBOUNDED = re.compile(r"\.[*+]|\\S[*+]|\)[*+]|\\w[*+]")


def name_of(signature):
    return f"{signature.category}-{signature.kind}-{signature.parts[0][:40]}"


def test_there_are_enough():
    """R18"""
    assert len(SIGNATURES) >= 120
    assert len({signature.sample for signature in SIGNATURES}) == len(SIGNATURES)
    assert len({(s.text, s.pattern) for s in SIGNATURES}) == len(SIGNATURES)


@pytest.mark.parametrize("signature", SIGNATURES, ids=name_of)
def test_the_sample_of_each_is_known(signature):
    """R18"""
    log = RankLog(tail=lines_of(signature.sample))
    [text] = scan.texts(log)
    assert signature.matches(text.body.strip())
    [seen] = scan.observe([text])
    if signature.kind is Kind.ROOT:
        assert seen.category is signature.category
    assert seen.kind is signature.kind


def test_nothing_ordinary_is_taken_for_a_failure():
    ordinary = [
        "Epoch 3/10: 100%|██████████| 500/500 [01:20<00:00, 6.21it/s, loss=0.31]",
        "{'loss': 0.5321, 'grad_norm': 1.2, 'learning_rate': 4.5e-05, 'epoch': 0.62}",
        "Some weights of BertForSequenceClassification were not initialized from the model checkpoint",
        "Loading checkpoint shards: 100%|██████████| 4/4 [00:12<00:00,  3.01s/it]",
        "best loss: inf",
        "best_loss=inf, starting from scratch",
        "INFO - out of vocabulary rate: 0.2 %, memory 12 GiB",
        "Saving model checkpoint to ./out/checkpoint-500",
        "GPU available: True (cuda), used: True",
        "eval accuracy 0.91, error rate 0.09",
        "Killed mutants: 12",
        "0 errors, 3 warnings",
    ]
    seen = scan.observe(scan.texts(RankLog(tail=lines_of("\n".join(ordinary)))))
    assert [(one.text.raw, one.category) for one in seen if one.strong] == []


def test_patterns_are_bounded():
    """No `*` or `+` of anything wide, and no quantifier around a quantifier."""
    for signature in SIGNATURES:
        if signature.pattern is None:
            continue
        assert not UNBOUNDED.search(signature.pattern.pattern)


def test_patterns_of_errors_without_a_signature_are_bounded():
    modules = (
        class_words,
        error_numbers,
        handled,
        log_text,
        manner_words,
        meaning,
        message_words,
        statement,
        tracebacks,
    )
    found = [pattern for module in modules for pattern in patterns_in(vars(module).values())]
    assert len(found) > 60
    assert [one.pattern for one in found if UNBOUNDED.search(one.pattern)] == []


def patterns_in(values):
    for value in values:
        if isinstance(value, re.Pattern):
            yield value
        elif isinstance(value, tuple):
            yield from patterns_in(value)


def test_every_category_has_a_type():
    assert {failure_type(category) for category in Category} == set(FailureType)
    loading, training = (failure_type(Category.NETWORK, trained=steps) for steps in (False, True))
    assert (loading, training) == (FailureType.MODEL_LOADING_ERROR, FailureType.COMMUNICATION)


def test_every_kind_is_used():
    kinds = Counter(signature.kind for signature in SIGNATURES)
    assert all(kinds[kind] >= 3 for kind in Kind)


@pytest.mark.parametrize(
    ("number", "category"),
    [
        (13, Category.CUDA_FAULT),
        (31, Category.CUDA_FAULT),
        (45, None),
        (48, Category.GPU_HW),
        (63, None),
        (74, Category.GPU_HW),
        (79, Category.GPU_HW),
        (94, Category.CUDA_FAULT),
        (95, Category.GPU_HW),
        (119, Category.GPU_HW),
        (9999, Category.GPU_HW),
    ],
)
def test_what_an_xid_means(number, category):
    line = f"[  12.3] NVRM: Xid (PCI:0000:41:00): {number}, pid=123, something"
    assert xid.in_line(line) == number
    assert xid.meaning(number) is category
    [seen] = scan.observe(scan.texts(RankLog(tail=lines_of(line))))
    assert seen.kind is (Kind.ADVICE if category is None else Kind.ROOT)
    assert category is None or seen.category is category


def test_hardware_counts_before_programs():
    assert xid.worst([45, 31, 79, 13]) == 79
    assert xid.worst([45, 31]) == 31
    assert xid.worst([45, 63]) is None
    assert xid.worst([]) is None
