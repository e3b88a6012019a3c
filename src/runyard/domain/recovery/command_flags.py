"""Well-known flags in a command: what they mean, what they say, and writing another value."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from runyard.domain.recovery import shell_words
from runyard.domain.recovery.shell_words import Word

Command = str | Sequence[str]


class Role(StrEnum):
    BATCH = "batch"
    GLOBAL_BATCH = "global_batch"  # accumulation follows from it
    ACCUMULATION = "accumulation"
    LEARNING_RATE = "learning_rate"
    WORKERS = "workers"
    PIN_MEMORY = "pin_memory"
    RECOMPUTE = "recompute"
    PORT = "port"
    RESUME = "resume"


# The most particular first: it is the one that is changed.
NAMES: dict[Role, tuple[str, ...]] = {
    Role.BATCH: (
        "per_device_train_batch_size",
        "per_gpu_train_batch_size",
        "train_micro_batch_size_per_gpu",
        "micro_batch_size",
        "micro_batch",
        "device_batch_size",
        "per_device_batch_size",
        "batch_size_per_gpu",
        "batch_size_per_device",
        "batch_per_gpu",
        "imgs_per_gpu",
        "samples_per_gpu",
        "train_batch_size",
        "batch_size",
        "batchsize",
        "batch",
        "bs",
        "b",
    ),
    Role.GLOBAL_BATCH: ("global_batch_size", "global_train_batch_size", "effective_batch_size"),
    Role.ACCUMULATION: (
        "gradient_accumulation_steps",
        "accumulate_grad_batches",
        "grad_accumulation_steps",
        "grad_accum_steps",
        "gradient_accumulation",
        "grad_accumulation",
        "accumulation_steps",
        "accum_steps",
        "accum_iter",
        "grad_accum",
        "update_freq",
    ),
    Role.LEARNING_RATE: (
        "learning_rate",
        "lr",
        "base_lr",
        "max_lr",
        "peak_lr",
        "init_lr",
        "base_learning_rate",
        "blr",
    ),
    Role.WORKERS: (
        "dataloader_num_workers",
        "num_workers",
        "workers",
        "n_workers",
        "num_data_workers",
        "data_workers",
        "dataloader_workers",
        "loader_workers",
        "j",
    ),
    Role.PIN_MEMORY: ("dataloader_pin_memory", "pin_memory", "pin_mem"),
    Role.RECOMPUTE: (
        "gradient_checkpointing",
        "activation_checkpointing",
        "grad_checkpointing",
        "use_checkpoint",
        "recompute_activations",
    ),
    Role.PORT: (
        "master_port",
        "main_process_port",
        "rdzv_endpoint",
        "dist_url",
        "init_method",
        "dist_port",
        "rdzv_port",
    ),
    Role.RESUME: ("resume_from_checkpoint",),
}
SHORT = frozenset({"b", "j", "bs"})  # one dash; as `--b` or `b=` they may be anything
_DASHES = re.compile(r"-{1,2}")
_TEMPLATE = re.compile(r"\{([^{}]{1,200})\}")


@dataclass(frozen=True, slots=True)
class Flag:
    """`written` is its name as the person wrote it, dashes included; `value` what follows."""

    written: str
    name: str
    value: str
    word: Word  # the one that holds the value
    joined: bool  # --flag=value

    @property
    def template(self) -> str | None:
        """The parameter whose value it takes."""
        found = _TEMPLATE.fullmatch(self.value)
        return None if found is None else found.group(1)


def normal(written: str) -> str:
    """`--Trainer.Batch-Size` as `batch_size`."""
    bare = _DASHES.sub("", written, count=1) if written.startswith("-") else written
    return bare.rpartition(".")[2].replace("-", "_").lower()


def flags(command: Command) -> list[Flag]:
    """`--flag value`, `--flag=value` and `name=value`, in order."""
    found = []
    given = shell_words.words(command)
    for word, following in zip(given, [*given[1:], None], strict=False):
        head, joined, value = word.text.partition("=")
        if joined:
            if _may_be_name(head):
                found.append(Flag(head, normal(head), value, word, True))
        elif word.text.startswith("-") and following is not None and _may_be_name(word.text):
            value = following.text
            negative = re.fullmatch(r"-[\d.]{1,40}(?:e-?\d{1,3})?", value) is not None
            if not value.startswith("-") or negative:
                found.append(Flag(word.text, normal(word.text), value, following, False))
    return [flag for flag in found if flag.word.plain]


def find(command: Command, role: Role) -> Flag | None:
    """The flag to change for this; of one that is given twice the last, which programs obey."""
    given = flags(command)
    for name in NAMES[role]:
        matching = [flag for flag in given if flag.name == name and _fits(flag, name)]
        if matching:
            return matching[-1]
    return None


def with_values(command: Command, values: Mapping[str, str]) -> Command:
    """`command` with other values behind the flags named as they are written."""
    changes = [
        (flag.word, shell_words.rewritten(flag.word, flag.value, values[flag.written]))
        for flag in flags(command)
        if flag.written in values and flag.value
    ]
    return shell_words.replaced(command, changes) if changes else command


def with_inserted(command: Command, written: str, value: str, behind: str) -> Command:
    """`command` with one more flag, right behind the value of another."""
    anchors = [flag for flag in flags(command) if flag.written == behind]
    if not anchors:
        return command
    word = anchors[-1].word
    if word.in_shell:
        raw = f"{word.raw} {written} {shlex.quote(value)}"
        return shell_words.replaced(command, [(word, raw)])
    parts = list(command)
    return (*parts[: word.part + 1], written, value, *parts[word.part + 1 :])


def _may_be_name(text: str) -> bool:
    return re.fullmatch(r"(?:\+{0,2}|-{1,2})[A-Za-z_][\w.\-]{0,200}", text) is not None


def _fits(flag: Flag, name: str) -> bool:
    if name in SHORT and name != "bs":
        return flag.written == f"-{name}"
    return True
