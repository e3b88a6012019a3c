"""What a program says when an error ends it, in the form of its language: the name of the error
and its message. Python's tracebacks are followed in tracebacks.py."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_NAME = 200
PANIC = "panic"  # of Rust and Go


@dataclass(frozen=True, slots=True)
class Statement:
    """`name` is the class of what was thrown, where there is one. `ends` is false where programs
    say it also of what they survive. An empty `message` stands on the next line."""

    name: str
    message: str
    ends: bool = True


_CLASS = r"(?:[A-Za-z_$][\w$]{0,60}(?:\.|::)){0,10}[A-Za-z_$][\w$]{0,80}"
_UNCAUGHT = re.compile(
    r'(?:Exception in thread "[^"]{1,120}"|Caused by:'
    r"|Unhandled (?:[Ee]xception[.:]|.{0,20}rejection:?)"
    r"|(?:PHP )?Fatal error: {1,3}Uncaught"
    r"|[+\w]{0,20}: ?terminating .{0,40}uncaught exception of type"
    rf"|Uncaught(?: \(in promise\))?) ({_CLASS})(?:: (.{{0,2000}}))?"
)
_JAVA_LINE = re.compile(
    r"\s{0,8}((?:[a-z_]\w{0,40}\.){1,10}[A-Z]\w{0,80}(?:Error|Exception)): (.{1,2000})"
)
_JULIA = re.compile(r"(?:InitError: |TaskFailedException: ){0,4}(?:([A-Z]\w{2,60}): )?(.{1,2000})")
_MATLAB = re.compile(r"Error using {1,3}\S")
_SCRIPT = re.compile(r"[a-z][+\w.-]{0,20}: \S{1,200}:\d{1,7}: (.{1,1000})")
_R = re.compile(r"Error in .{1,300}? : ?(.{0,2000})|Error: (.{1,2000})")
_RUST = re.compile(
    r"thread '[^']{0,120}' panicked at (?:'(.{1,1500})', )?\S{1,300}:\d{1,6}:\d{1,6}"
)
_GO = re.compile(r"panic: (.{1,2000})")
_THROWN = re.compile(r"terminate called after throwing an instance of '([\w:<>, ]{1,200})'")
_WHAT = re.compile(r"\s{0,8}what\(\): {1,3}(.{0,2000})")
_NODE = re.compile(rf"(?:Uncaught )?({_CLASS}(?:Error|Exception)): (.{{1,2000}})")
_FLAGS = re.compile(r"Flags parsing error: (.{1,1000})")
_CUDA = re.compile(
    r"\[?(?:CUDA|cuda|Cuda|GPU)[ _]?(?:ERROR|error|Error|assert)\b"
    r"[^:]{0,200}(?::\d{1,7})?:? {0,4}(.{0,500})"
)
_COMPILER = re.compile(r"[\w./+-]{1,200}:\d{1,7}:\d{1,5}: (?:fatal )?error: (.{1,1000})")
_AT_LINE = re.compile(
    r"[\w./-]{1,200}\.py:\d{1,7}: (\w{1,60}(?:Error|Exception))(?:: (.{0,1000}))?$"
)
_LINE = r"(?:(?:line|Zeile|ligne|línea|行|第) ?\d{1,6}: )?"
_TOOL = re.compile(
    r"(?:ERROR|FATAL|Fatal|fatal|error|Error|fatal error|FATAL ERROR)(?: ?[:\]]|!) ?(.{3,1000})"
    rf"|[\w./+@-]{{1,120}}: {_LINE}"
    r"(?:error: |fatal: |fatal error: |ERROR:? |Error: |\*\*\* )(.{3,1000})"
    r"|[\w./+@-]{2,80}: ((?:\(\d{1,3}\) |[Ee]rror |[Ff]ailed |[Ff]ailure |[Cc]annot |[Cc]an't "
    r"|[Cc]ould not "
    r"|[Uu]nable to |[Oo]ption |[Ii]nvalid |[Mm]issing |[Uu]nknown |[Ii]llegal |[Cc]onnection "
    r"|[Nn]o |[Uu]nrecogni[sz]ed |[Uu]nexpected ).{3,1000})"
    r"|(?:[a-z]{2,12}: ){1,2}([Uu]nexpected .{3,1000})"
    r"|(Please (?:set|specify|provide|install|pass|use|check|run|export) .{3,1000})"
    r"|([A-Z][a-z]{1,30}(?:[A-Z][a-z]{1,30}){1,6}: .{3,1000})"
    rf"|(?:[\w./+@-]{{1,120}}\.sh|/bin/[a-z]{{1,8}}|[a-z]{{0,3}}sh): {_LINE}(.{{3,1000}})"
)


def of_line(body: str, before: str) -> Statement | None:
    """`before` is the line before it, which names what a C++ program threw."""
    line = body.rstrip()
    text = line.lstrip().removeprefix("ERROR: ").removeprefix("LoadError: ")
    if not text:
        return None
    thrown = _WHAT.match(line)
    if thrown is not None:
        named = _THROWN.search(before)
        return Statement(named.group(1) if named else "", thrown.group(1))
    return _of_language(line, text) or _of_tool(text)


def exception(line: str) -> Statement:
    """The last line of a Python traceback."""
    name, _, message = line.partition(":")
    return Statement(name.strip()[:LONGEST_NAME], message.strip())


def _of_language(line: str, text: str) -> Statement | None:
    if text[0] == "t" and (found := _RUST.match(text)):
        return Statement(PANIC, found.group(1) or "")
    if text[0] == "p" and (found := _GO.match(text)):
        return Statement(PANIC, found.group(1))
    if found := _UNCAUGHT.match(text):
        return Statement(found.group(1), found.group(2) or "")
    if "LoadError: " in line and (found := _JULIA.match(text)):
        return Statement(found.group(1) or "", found.group(2))
    if _MATLAB.match(text):
        return Statement("MATLAB error", "")
    if text.startswith("Error") and (found := _R.match(text)):
        in_call, plain = found.groups()
        return Statement("", plain or in_call or "", ends=plain is None)
    if text.startswith("Flags") and (found := _FLAGS.match(text)):
        return Statement("FlagsError", found.group(1))
    if text[0] in "[CGc" and (found := _CUDA.match(text)):
        return Statement("CUDA error", found.group(1).strip())
    if ": error: " in text and (found := _COMPILER.match(text)):
        return Statement("CompilationError", found.group(1))
    if found := _SCRIPT.match(text):
        return Statement("", found.group(1))
    if ".py:" in text and (found := _AT_LINE.match(text)):
        return Statement(found.group(1), found.group(2) or "")
    if "rror: " in text or "xception: " in text:
        found = _JAVA_LINE.match(line) or _NODE.match(text)
        return None if found is None else Statement(found.group(1), found.group(2), ends=False)
    return None


def _of_tool(text: str) -> Statement | None:
    """What programs of a shell say: who, and what is wrong."""
    found = _TOOL.match(text)
    if found is None:
        return None
    said = next(group for group in found.groups() if group is not None)
    name, colon, rest = said.partition(": ")
    if colon and name.isidentifier() and not name.islower():
        return Statement(name, rest, ends=False)
    return Statement("", said, ends=False)
