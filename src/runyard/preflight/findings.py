"""What a check found out: good, worth knowing, or a reason not to start."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["pass", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """`code` never changes its meaning; `params` are what its words need."""

    check: str
    verdict: Verdict
    code: str = "ok"
    params: dict[str, Any] = field(default_factory=dict)

    def shown(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "verdict": self.verdict,
            "code": self.code,
            "params": self.params,
        }


def passed(check: str, **params: Any) -> Finding:
    return Finding(check, "pass", "ok", params)


def warned(check: str, code: str, **params: Any) -> Finding:
    return Finding(check, "warn", code, params)


def failed(check: str, code: str, **params: Any) -> Finding:
    return Finding(check, "fail", code, params)


def worst(found: list[Finding]) -> Verdict:
    verdicts = {one.verdict for one in found}
    if "fail" in verdicts:
        return "fail"
    return "warn" if "warn" in verdicts else "pass"
