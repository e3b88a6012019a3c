"""How errors that no signature knows speak: of what comes and goes, or of what stays wrong."""

from __future__ import annotations

import re

from runyard.domain.failures.categories import Category as C


def _any_case(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


# What comes and goes: only for errors that are not raised by wrong code alone.
PASSING: tuple[tuple[C, re.Pattern[str]], ...] = (
    (C.STORAGE, _any_case(
        r"stale (?:nfs )?file", r"transport endpoint", r"input/output", r"\bi/o error",
        r"remote i/o", r"read-only file", r"database is locked", r"resource deadlock",
        r"lock(?:ed)? by another process",
    )),
    (C.FD_LIMIT, _any_case(
        r"too many open files", r"(?:inotify|thread|process|file) .{0,20}limit reached",
        r"can't start new thread",
    )),
    (C.RENDEZVOUS, _any_case(
        r"barrier timed out", r"rendezvous",
        r"waiting for (?:clients|workers|peers|all (?:ranks|tasks))",
    )),
    (C.COMM_HANG, _any_case(
        r"\b(?:rank|worker|collective)\w{0,3}\b.{0,60}\b(?:stalled|hung|timed out)",
        r"collective.{0,40}time",
    )),
    (C.COMM_NET, _any_case(
        r"another task died", r"(?:peer|rank|task|worker) (?:died|is gone|disconnected|lost)",
        r"coordination service",
    )),
    (C.NETWORK, _any_case(
        r"transport failure",
        r"broker",
        r"(?:connection|stream) unexpectedly closed", r"resolve host",
        r"timed out", r"time-?out\b",
        r"connection (?:was )?(?:refused|reset|aborted|closed|error|lost|failed)",
        r"(?:could not|couldn't|failed to|unable to|cannot) (?:connect|resolve|reach|establish)",
        r"unreachable", r"name resolution", r"service unavailable", r"bad gateway",
        r"server (?:closed|disconnected|error|unavailable)", r"\bunavailable:",
        r"deadline.?exceeded", r"network (?:error|is|issue|failure)", r"tls handshake",
        r"early eof", r"rpc (?:failed|error)", r"connection to server",
        r"curl: \((?:5|6|7|18|28|35|52|56|92)\)",
    )),
)  # fmt: skip

# An error that says one of these fails the same way again, whatever else it names.
SURELY_WRONG = _any_case(
    r"\bexpected\b.{1,120}\bbut\b", r"\bexpects\b", r"\binconsistent\b", r"out of bounds",
    r"invalid (?:value|argument|option|type|shape|dim|size|key|index|use|combination)",
    r"(?:operator|function|attribute|column|table|field|symbol|op)\b.{0,80}does not exist",
    r"no such (?:column|table|function|option|operator|attribute|method|field)",
    r"(?:not|un)(?: |-)?(?:supported|implemented|declared|defined)\b",
    r"(?:size|shape|type|dtype|dimension)s? mismatch",
    r"must (?:be|have|match|contain|not)\b", r"should (?:be|have|not)\b", r"nil (?:map|pointer)",
    r"got an? unexpected", r"cannot be (?:negative|zero|empty|none|multiplied|broadcast)",
)  # fmt: skip
# An unknown error that says one of these fails the same way again ...
WRONG = _any_case(
    r"\bexpected\b", r"\bgot\b", r"\bmust\b", r"\bshould(?:n't)?\b", r"\bcannot\b", r"can't",
    r"\binvalid\b", r"\bmismatch", r"\bincompatible", r"not supported", r"unsupported",
    r"not implemented", r"undefined", r"not defined", r"no method", r"\bnull\b", r"\bnil\b",
    r"`?None`?", r"out of (?:bounds|range)", r"\bshapes?\b", r"\bsizes?\b",
    r"\bdim(?:ension)?s?\b", r"\bdtypes?\b", r"\btypes?\b", r"\barguments?\b", r"\bindex\b",
    r"attempted", r"\brequired\b", r"check failed", r"unwrap", r"not valid", r"not fitted",
    r"\billegal\b", r"\bunknown\b", r"not allowed", r"forgot", r"attempt to", r"incorrect",
    r"please",
    r"syntax error", r"not found", r"dereference", r"duplicate", r"empty", r"larger than",
    r"greater than", r"less than", r"exceeds", r"too (?:large|long|small|short|many)",
    r"no attribute", r"object .{1,60} not", r"more than one", r"at least", r"at most",
    r"wrong (?:type|shape|size|number|value|key|format)",
    r"unable to (?:infer|determine|broadcast|create)",
)  # fmt: skip

# ... unless it may be somebody else's fault.
MAYBE_PASSING = _any_case(
    r"connect", r"time.?out", r"timed", r"temporar", r"unavailable", r"\bserver", r"network",
    r"socket", r"\blost\b", r"\bdied\b", r"\bkilled\b", r"\bhung\b", r"memory", r"\bcuda\b",
    r"\bnccl\b", r"cudnn", r"cublas", r"\bgpu\b", r"\bdriver\b", r"retry", r"\bbusy\b",
    r"\block(?:ed)?\b", r"\bhost\b", r"remote", r"response", r"\bI/O\b", r"\bdisk\b", r"signal",
    r"crashed", r"terminated", r"interrupted", r"unexpectedly", r"try again", r"heartbeat",
    r"\brpc\b", r"internal error",
)  # fmt: skip

# A file that is not whole.
BROKEN = _any_case(
    r"checksum", r"crc-?(?:32|check)", r"corrupt", r"truncated", r"bad magic", r"invalid magic",
    r"incomplete", r"unexpected (?:eof|end)", r"ended before the end", r"not within the file",
    r"damaged",
)  # fmt: skip
