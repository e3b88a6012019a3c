"""The GPU driver is there, and new enough for the CUDA that the job's torch was built for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from runyard.preflight.findings import Finding, passed, warned

VERSION_FILE = "/proc/driver/nvidia/version"
_UNDER_WINDOWS = "/dev/dxg"
_VERSION = re.compile(r"\b(\d{3,4})\.\d+(?:\.\d+)?\b")
# The first driver for each major version of CUDA; minor ones run with any driver of their major.
_FIRST_DRIVERS = ((580, 13), (525, 12), (450, 11), (396, 10))


def present(version_file: str = VERSION_FILE) -> list[Finding]:
    if os.path.exists(version_file) or os.path.exists(_UNDER_WINDOWS):
        return []
    return [warned("gpu_driver", "no_gpu_driver")]


def fits(torch_built_for: Mapping[str, str], version_file: str = VERSION_FILE) -> Finding:
    if torch_built_for.get("hip"):
        return passed("gpu_driver", torch_hip=torch_built_for["hip"])
    cuda = torch_built_for.get("cuda") or ""
    if not cuda:
        return warned("gpu_driver", "torch_without_cuda")
    driver = _driver(version_file)
    newest = next((major for first, major in _FIRST_DRIVERS if driver and driver >= first), None)
    wanted = cuda.partition(".")[0]
    if newest is not None and wanted.isdigit() and int(wanted) > newest:
        # No proof: a library for newer CUDA versions may have been installed beside the driver.
        return warned("gpu_driver", "driver_too_old", torch_cuda=cuda, driver=driver)
    return passed("gpu_driver", torch_cuda=cuda, driver=driver)


def _driver(version_file: str) -> int | None:
    try:
        text = Path(version_file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = _VERSION.search(text.partition("\n")[0])
    return int(found[1]) if found else None
