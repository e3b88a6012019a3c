"""Evidence becomes a diagnosis: what our records prove, else the earliest root in the logs of all
ranks, else what exit code and signal say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runyard.domain.failures import end_facts, facts, fingerprint, kernel, roots, scan, xid
from runyard.domain.failures.categories import Category, failure_type
from runyard.domain.failures.diagnosis import NO_LINE, Diagnosis, ProofLine
from runyard.domain.failures.end_facts import Proven
from runyard.domain.failures.evidence import Evidence
from runyard.domain.failures.observation import Observation
from runyard.domain.failures.signature import Kind
from runyard.domain.failures.signatures import gpu_memory
from runyard.domain.reasons import Reason

MOST_PROOF = 10
MOST_CASCADE = 20
LONGEST_SHOWN = 1000
FOREIGN_BYTES = 512 << 20  # less than this of somebody else's makes no difference

_FILE_TOO_LARGE = "File too large"  # what the C library says to EFBIG

# With these, hardware that reported an error is the likelier cause.
_MAYBE_HARDWARE = frozenset(
    {Category.CUDA_FAULT, Category.COMM_HANG, Category.COMM_NET, Category.NAN, Category.GPU_BUSY}
)
# A loss that is no number comes before what it leads to.
_MAYBE_NAN = frozenset(
    {Category.UNKNOWN, Category.RULE, Category.CODE, Category.STALL, Category.TIMEOUT}
)


def classify(evidence: Evidence) -> Diagnosis | None:
    """None when nothing went wrong: it ended with exit code 0 and a finite loss."""
    logs = [(log, scan.texts(log)) for log in evidence.logs]
    seen = [one for log, lines in logs for one in scan.observe(lines, log.rank)]
    seen += kernel.observed(evidence, seen)
    root = roots.choose(seen, logs)
    proven = end_facts.before_logs(evidence)
    if proven is None and evidence.exit_code == 0 and evidence.stop_cause is None:
        if not _not_a_number(evidence, root):
            return None
        root = root if root is not None and root.category is Category.NAN else None
        return _told(evidence, Proven(Category.NAN, 0.9), root, seen)
    if proven is not None:
        return _told(evidence, proven, _saying(proven.category, seen), seen)
    return _judged(evidence, root, seen)


def _judged(
    evidence: Evidence, root: Observation | None, seen: Sequence[Observation]
) -> Diagnosis:
    stopped = end_facts.stopped_by_us(evidence)
    if stopped is not None:
        # What a program says while we end it is no cause; what hung it may be.
        hung = stopped.category in (Category.STALL, Category.COMM_HANG)
        surely = root is not None and root.strong and not roots.is_soft(root)
        if not (hung and surely):
            weak = _MAYBE_NAN if evidence.metrics.loss_finite is False else frozenset()
            if stopped.category in weak:
                return _told(evidence, Proven(Category.NAN, 0.9), None, seen)
            return _told(evidence, stopped, _saying(stopped.category, seen), seen)
    said = (one.text.body for one in seen if one.kind is Kind.CASCADE)
    signal = end_facts.ended_by(evidence, said)
    proven = end_facts.after_logs(evidence, signal)
    stop = roots.interrupt(seen) if signal == end_facts.INTERRUPT else None
    if stop is not None and (root is None or roots.follows(root, stop)):
        return _told(evidence, Proven(Category.EXTERNAL_STOP, stop.confidence), stop, seen)
    if root is not None and not root.strong and signal is not None:
        root = _saying(proven.category, seen)
    if root is None or root.category is Category.UNKNOWN:
        if root is not None and proven.category is not Category.UNKNOWN and not root.exception:
            root = None
        if root is not None:
            proven = Proven(Category.UNKNOWN, root.confidence, proven.facts, "uncaught_exception")
    else:
        proven = Proven(_of_shell(evidence, root), root.confidence)
    if evidence.files_limited:
        root, proven = _as_full_disk(root, proven, signal, seen)
    hardware = _hardware(evidence, proven.category)
    if hardware is not None:
        return _told(evidence, hardware, root, seen)
    sure = root is not None and root.confidence >= 0.85
    if proven.category in _MAYBE_NAN and evidence.metrics.loss_finite is False and not sure:
        return _told(evidence, Proven(Category.NAN, 0.85), root, seen)
    return _told(evidence, proven, root, seen)


def _as_full_disk(
    root: Observation | None, proven: Proven, signal: int | None, seen: Sequence[Observation]
) -> tuple[Observation | None, Proven]:
    """A drill cannot fill a disk that others use: what its limit leads to counts as that."""
    said = next((one for one in seen if _FILE_TOO_LARGE in one.text.raw), None)
    if said is None and signal != end_facts.FILE_SIZE_EXCEEDED:
        return root, proven
    return said, Proven(Category.DISK_FULL, 0.95, {"drill": True})


def _of_shell(evidence: Evidence, root: Observation) -> Category:
    """A shell that does not find what it should run says so as of any file."""
    missing = evidence.exit_code == 127 and root.category is Category.PATH
    return Category.CONFIG if missing and not root.exception else root.category


def _told(
    evidence: Evidence, proven: Proven, root: Observation | None, seen: Sequence[Observation]
) -> Diagnosis:
    category = proven.category
    proof = _proof(category, root, seen)
    known: dict[str, Any] = {**facts.named(category, [one.text.raw for one in proof])}
    known |= {name: value for name, value in proven.facts.items() if value is not None}
    if root is not None and root.variant and root.category is category:
        known["variant"] = root.variant
    known |= _measured(evidence, category, known)
    code = proven.code or _code(category, known)
    step = evidence.metrics.step
    return Diagnosis(
        failure_type(category, trained=bool(step)),
        category,
        proven.confidence,
        _fingerprint(category, root, proven),
        Reason(code, known),
        None if root is None else _line(root, "root"),
        tuple(_line(one, "root") for one in proof[:MOST_PROOF]),
        tuple(_line(one, one.kind.value) for one in _followed(root, seen)),
        known,
    )


def _proof(
    category: Category, root: Observation | None, seen: Sequence[Observation]
) -> list[Observation]:
    """The root, then what else says the same; a message of several lines is one proof."""
    same = [
        one
        for one in seen
        if one is not root and one.category is category and one.kind is Kind.ROOT
    ]
    return ([] if root is None else [root]) + same


def _followed(root: Observation | None, seen: Sequence[Observation]) -> list[Observation]:
    others = [
        one
        for one in seen
        if one.kind in (Kind.CASCADE, Kind.TEARDOWN)
        or (root is not None and one.kind is Kind.ROOT and one.category is not root.category)
    ]
    return others[:MOST_CASCADE]


def _saying(category: Category, seen: Sequence[Observation]) -> Observation | None:
    found = [one for one in seen if one.category is category and one.kind is Kind.ROOT]
    return found[0] if found else None


def _not_a_number(evidence: Evidence, root: Observation | None) -> bool:
    said = root is not None and root.category is Category.NAN and root.strong
    return said or evidence.metrics.loss_finite is False


def _hardware(evidence: Evidence, category: Category) -> Proven | None:
    """A GPU that reported broken hardware while the attempt ran."""
    if category not in _MAYBE_HARDWARE:
        return None
    for gpu in evidence.host.gpus:
        worst = xid.worst(gpu.xids)
        if worst is not None and xid.meaning(worst) is Category.GPU_HW:
            return Proven(Category.GPU_HW, 0.95, {"gpu": gpu.index, "xid": worst})
        if gpu.ecc_errors > 0:
            return Proven(Category.GPU_HW, 0.95, {"gpu": gpu.index, "ecc_errors": gpu.ecc_errors})
    return None


def _measured(evidence: Evidence, category: Category, known: dict[str, Any]) -> dict[str, Any]:
    """What the machine and the metrics add."""
    added: dict[str, Any] = {}
    metrics, host = evidence.metrics, evidence.host
    if metrics.step is not None:
        added["step"] = metrics.step
    if category is Category.NAN and metrics.first_bad_step is not None:
        added["bad_step"] = metrics.first_bad_step
    if category is Category.DISK_FULL and host.disk_free_bytes is not None:
        added["free_bytes"] = host.disk_free_bytes
        added["path"] = known.get("path") or host.disk_path
    if category is Category.GPU_OOM:
        foreign = _foreign_bytes(evidence, known)
        if foreign >= FOREIGN_BYTES:
            added["foreign_bytes"] = foreign
    if category in (Category.GPU_HW, Category.CUDA_FAULT):
        suspects = [gpu.uuid for gpu in host.gpus if gpu.uuid and (gpu.xids or gpu.ecc_errors)]
        if suspects or len(host.gpus) == 1:
            added["gpu_uuids"] = suspects or [gpu.uuid for gpu in host.gpus if gpu.uuid]
    return added


def _foreign_bytes(evidence: Evidence, known: dict[str, Any]) -> int:
    """Memory of the GPU that others held, as the message or the machine tells."""
    own = evidence.own_pids
    said = sum(one["bytes"] for one in known.get("holders", ()) if one["pid"] not in own)
    seen = max((gpu.foreign_mb for gpu in evidence.host.gpus), default=0) << 20
    # Without our own pids a holder may be another rank of this attempt.
    return max(said if own or evidence.world_size == 1 else 0, seen)


def _code(category: Category, known: dict[str, Any]) -> str:
    if category is Category.GPU_OOM:
        if known.get("foreign_bytes"):
            return "gpu_oom_foreign"
        if known.get("variant") == gpu_memory.SEARCH_EXHAUSTED:
            return "gpu_oom_search_exhausted"
    return category.value


def _fingerprint(category: Category, root: Observation | None, proven: Proven) -> str:
    if root is not None:
        return f"{category}: {fingerprint.of_line(root.text.body)}"
    told = ", ".join(
        f"{name} {proven.facts[name]}"
        for name in ("signal", "exit_code", "rule", "service", "xid")
        if proven.facts.get(name) is not None
    )
    name = NO_LINE if category is Category.UNKNOWN else category.value
    return f"{name}: {told}" if told else name


def _line(one: Observation, kind: str) -> ProofLine:
    number = 0 if one.log_rank == kernel.RANK else one.text.number
    return ProofLine(one.rank, number, one.text.raw[:LONGEST_SHOWN], kind)
