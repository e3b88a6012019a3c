"""Saving a checkpoint so that it is there whole or not at all, whatever dies in between."""

from __future__ import annotations

import itertools
import os
import time

from runyard.report.telling import checkpoint, report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MANIFEST_VERSION = 1
MANIFEST_SUFFIX = ".manifest.json"  # beside a file
MANIFEST_INSIDE = "runyard.manifest.json"  # within a directory
PARTIAL_PREFIX = ".partial-"  # names that begin so were never finished

_HASH_BLOCK = 1 << 20
_numbers = itertools.count(1)


def save_checkpoint(
    save_function: Callable[[str], object],
    path: str | os.PathLike[str],
    step: object = None,
    *,
    manifest: bool = True,
    **metrics: object,
) -> str:
    """Call `save_function(temporary_path)`, sync what it wrote, move it to `path`, and report it.

    It may write a file or make a directory. With `manifest`, sizes and hashes are kept, by which
    the checkpoint is verified before anybody resumes from it. Failing to save raises.
    """
    report(phase="saving")
    final = os.path.abspath(os.fsdecode(path))
    folder, name = os.path.split(final)
    os.makedirs(folder, exist_ok=True)
    # The end of the name stays: some savers choose the format by it, or append it.
    draft = os.path.join(folder, f"{PARTIAL_PREFIX}{os.getpid()}-{next(_numbers)}-{name[-100:]}")
    try:
        save_function(draft)
        if not os.path.lexists(draft):
            raise FileNotFoundError(f"the save function wrote nothing at {draft}")
        if os.path.isdir(draft):
            _finish_directory(draft, final, step, manifest)
        else:
            _finish_file(draft, final, step, manifest)
    except BaseException:
        _remove(draft)
        raise
    checkpoint(final, step, **metrics)
    return final


def _finish_file(draft: str, final: str, step: object, manifest: bool) -> None:
    _sync(draft)
    beside = final + MANIFEST_SUFFIX
    text = None
    if manifest:
        text = _manifest_text({os.path.basename(final): _fingerprint(draft)}, step)
    # The old manifest goes first: a new file must never stand beside the hash of the old one.
    _remove(beside)
    os.replace(draft, final)
    if text is not None:
        _write_manifest(beside, text)
    _sync(os.path.dirname(final))


def _finish_directory(draft: str, final: str, step: object, manifest: bool) -> None:
    files = sorted(_files_below(draft))
    if manifest:
        listed = {os.path.relpath(file, draft): _fingerprint(file) for file in files}
        _write_manifest(os.path.join(draft, MANIFEST_INSIDE), _manifest_text(listed, step))
    for file in files:
        _sync(file)
    for folder, _, _ in os.walk(draft):
        _sync(folder)
    old = None
    if os.path.lexists(final):
        old = f"{draft}.old"
        os.rename(final, old)
    try:
        os.rename(draft, final)
    except OSError:
        if old is not None:
            os.rename(old, final)
        raise
    _sync(os.path.dirname(final))
    if old is not None:
        _remove(old)


def _manifest_text(files: dict[str, dict[str, object]], step: object) -> str:
    import json

    content: dict[str, object] = {"v": MANIFEST_VERSION, "t": time.time(), "files": files}
    if isinstance(step, int):
        content["step"] = int(step)
    return json.dumps(content, indent=1)


def _write_manifest(path: str, text: str) -> None:
    """The checkpoint is whole without it, so a failure here only leaves it unproven."""
    draft = os.path.join(
        os.path.dirname(path), f"{PARTIAL_PREFIX}{os.getpid()}-{next(_numbers)}.json"
    )
    try:
        with open(draft, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError:
        _remove(draft)


def _fingerprint(path: str) -> dict[str, object]:
    import hashlib  # loads a large library, and only saving needs it

    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while block := file.read(_HASH_BLOCK):
            digest.update(block)
            size += len(block)
    return {"size": size, "sha256": digest.hexdigest()}


def _files_below(folder: str) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        yield from (os.path.join(parent, name) for name in names)


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        import contextlib

        with contextlib.suppress(OSError):
            os.unlink(path)
