"""What a command's exit code says; docs/cli.md also has those of a job that `run` follows."""

from __future__ import annotations

OK = 0
FAILED = 1
USAGE = 2
UNREACHABLE = 3
NOT_FOUND = 4
REFUSED = 5
NOT_YET = 6
INTERRUPTED = 130
BROKEN_PIPE = 141
