"""Labelled logs of failures: what they are, what the classifier takes them for, and what an error
costs. `python tests/labelled_logs.py [FILE...]` prints the figures of the held-out sets."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runyard.domain.failures.categories import Category
from runyard.domain.failures.classify import classify
from runyard.domain.failures.evidence import (
    Evidence,
    GpuFact,
    HostFacts,
    LastMetrics,
    RankLog,
    lines_of,
)
from runyard.domain.recovery.policy import NEVER_RETRIED

CORPUS = Path(__file__).parent / "corpus"
HELD_OUT = CORPUS / "held_out"
_MARK = "=== "
_KERNEL = "# kernel: "


@dataclass(frozen=True)
class Labelled:
    name: str
    category: Category
    evidence: Evidence


@dataclass(frozen=True)
class Figures:
    logs: int
    wrong: Sequence[tuple[str, Category, Category]]  # name, what it is, what it was taken for

    @property
    def right(self) -> int:
        return self.logs - len(self.wrong)

    @property
    def unknown(self) -> int:
        return sum(found is Category.UNKNOWN for *_, found in self.wrong)

    @property
    def harmful(self) -> list[tuple[str, Category, Category]]:
        """What must not be tried again, taken for something that is."""
        return [
            one for one in self.wrong if one[1] in NEVER_RETRIED and one[2] not in NEVER_RETRIED
        ]


def labelled(name: str, told: dict[str, str], text: str) -> Labelled:
    """`told` says what it is and how it ended; `# kernel:` lines may come before the log."""
    kernel = []
    while text.startswith(_KERNEL):
        line, _, text = text.partition("\n")
        kernel.append(line.removeprefix(_KERNEL))
    gpus = (GpuFact(0, "GPU-a", xids=(int(told["xid"]),)),) if "xid" in told else ()
    finite = {"False": False, "True": True}.get(told.get("loss_finite", ""))
    evidence = Evidence(
        exit_code=int(told["exit"]) if told.get("exit") else None,
        signal=int(told["signal"]) if told.get("signal") else None,
        cause=told.get("cause", "exited"),
        stop_cause=told.get("stop"),
        oom_kills=int(told.get("oom_kills", "0")),
        logs=(RankLog(tail=lines_of(text)),),
        metrics=LastMetrics(
            loss_finite=finite,
            first_bad_step=int(told["bad_step"]) if "bad_step" in told else None,
        ),
        host=HostFacts(gpus=gpus, kernel_lines=tuple(kernel)),
        world_size=int(told.get("world", "1")),
    )
    return Labelled(name, Category(told["category"]), evidence)


def read_one(path: Path) -> Labelled:
    """A file with one log below a line that labels it."""
    head, _, text = path.read_text(encoding="utf-8").partition("\n")
    return labelled(path.stem, _pairs(head.removeprefix("# ").split(" ")), text)


def read_set(path: Path) -> list[Labelled]:
    """A file with many logs, each below `=== NAME category=... exit=...`."""
    found = []
    for piece in f"\n{path.read_text(encoding='utf-8')}".split(f"\n{_MARK}")[1:]:
        head, _, text = piece.partition("\n")
        name, *told = head.split(" ")
        found.append(labelled(name, _pairs(told), text))
    return found


def judged(one: Labelled) -> Category:
    found = classify(one.evidence)
    return Category.UNKNOWN if found is None else found.category


def measure(logs: Sequence[Labelled]) -> Figures:
    seen = [(one.name, one.category, judged(one)) for one in logs]
    return Figures(len(logs), [one for one in seen if one[1] is not one[2]])


def _pairs(words: Iterable[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def main(paths: Sequence[str]) -> None:
    for path in [Path(path) for path in paths] or sorted(HELD_OUT.glob("*.txt")):
        found = measure(read_set(path))
        print(
            f"{path.stem}: {found.right} of {found.logs} right, {found.unknown} not known, ",
            end="",
        )
        print(f"{len(found.wrong) - found.unknown} taken for something else, ", end="")
        print(f"{len(found.harmful)} harmful")
        for name, category, taken in found.wrong:
            print(f"  {name}: {category}, taken for {taken}")


if __name__ == "__main__":
    main(sys.argv[1:])
