"""The supervisor package as bytes with a name made of their content, for nodes that have nothing
of ours."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "supervisor")


def make() -> tuple[str, bytes]:
    """(name, archive): the same files give the same name and bytes."""
    names = sorted(name for name in os.listdir(_PACKAGE) if name.endswith(".py"))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            info = zipfile.ZipInfo(f"runyard/supervisor/{name}", (2000, 1, 1, 0, 0, 0))
            with open(os.path.join(_PACKAGE, name), "rb") as file:
                archive.writestr(info, file.read())
    data = buffer.getvalue()
    return hashlib.sha256(data).hexdigest()[:16], data
