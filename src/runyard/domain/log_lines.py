"""How the bytes of a log become lines that people read."""

from __future__ import annotations

import codecs

# Far more than a screen holds; a line of a million characters helps nobody in a list of lines.
LONGEST_LINE = 16 * 1024


def folded(line: bytes) -> bytes:
    """What a terminal would show in the end: text after a carriage return replaces the line."""
    line = line.rstrip(b"\r")
    return line[line.rfind(b"\r") + 1 :]


def shown(line: bytes, longest: int = LONGEST_LINE) -> str:
    """A line (without its newline) as text: folded, decoded whatever it holds, cut when long."""
    return cut(folded(line), longest)


def cut(line: bytes, longest: int = LONGEST_LINE, whole: int | None = None) -> str:
    """`line` as text, of a long one the first `longest` bytes. `whole` is how many bytes it has in
    all when only its beginning was read."""
    whole = len(line) if whole is None else whole
    if whole <= longest:
        return line.decode("utf-8", "replace")
    # A character that the cut would go through is left out, not shown as damage.
    head, used = codecs.utf_8_decode(line[:longest], "replace", False)
    return f"{head} [... {whole - used} more bytes in this line]"


def gap_line(dropped: int) -> str:
    """The line shown where the middle of a log was dropped to keep it within its limit."""
    return f"[... {amount(dropped)} dropped here ...]"


def amount(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
