"""How what a slice writes is found and copied: pieces, blocks of long files, waiting for more."""

from __future__ import annotations

import os
import threading
import time

from runyard.ray_bridge.mirror import Mirror
from runyard.ray_bridge.slice_changes import Changes
from runyard.ray_bridge.slice_files import BLOCK_BYTES, INLINE_BYTES, SliceFiles

LONG_S = 30.0


def written(folder, name, data):
    with open(folder / name, "ab") as file:
        file.write(data)


def test_a_long_file_goes_on_in_blocks_behind_its_piece(tmp_path):
    """R34: piece and blocks together are the file, in order; nothing is told twice."""
    data = os.urandom(INLINE_BYTES + 2 * BLOCK_BYTES + 100)
    written(tmp_path, "out.log", data)
    files = SliceFiles(str(tmp_path))
    pieces = files.pieces({})
    assert files.longest({}, pieces) == "out.log"
    start, blocks = files.blocks("out.log", {}, pieces, 4)
    assert start == INLINE_BYTES
    assert [len(block) for block in blocks] == [BLOCK_BYTES, BLOCK_BYTES, 100, 0]
    assert pieces[0][2] + b"".join(blocks) == data


def test_a_file_that_is_a_little_behind_needs_no_blocks(tmp_path):
    written(tmp_path, "out.log", b"x" * (INLINE_BYTES + 10))
    files = SliceFiles(str(tmp_path))
    assert files.longest({}, files.pieces({})) == ""
    offsets = {"out.log": INLINE_BYTES}
    assert files.pieces(offsets) == [("out.log", INLINE_BYTES, b"x" * 10)]


def test_the_longest_of_several_files_goes_on(tmp_path):
    written(tmp_path, "journal", b"j" * 100)
    written(tmp_path, "out.log", b"a" * (INLINE_BYTES * 2))
    written(tmp_path, "rank-1.log", b"b" * (INLINE_BYTES * 9))
    files = SliceFiles(str(tmp_path))
    pieces = files.pieces({})
    assert [name for name, _, _ in pieces] == ["journal", "out.log"]
    assert files.longest({}, pieces) == "rank-1.log"
    assert files.blocks("rank-1.log", {}, pieces, 1)[0] == 0


def test_a_copy_of_blocks_is_the_file(tmp_path):
    data = os.urandom(INLINE_BYTES * 20)
    source = tmp_path / "source"
    source.mkdir()
    written(source, "out.log", data)
    files, mirror = SliceFiles(str(source)), Mirror(str(tmp_path), 0)
    while pieces := files.pieces(mirror.offsets):
        before = dict(mirror.offsets)
        mirror.take(pieces)
        if behind := files.longest(before, pieces):
            mirror.go_on(behind, *files.blocks(behind, before, pieces, 3))
    assert (tmp_path / "out.log").read_bytes() == data
    assert mirror.offsets == {"out.log": len(data)}


def test_a_copy_of_what_is_being_written_is_what_was_written(tmp_path):
    """R34: a block that ends where the file ended is the last of its answer, however fast the
    file grows meanwhile."""
    source = tmp_path / "source"
    source.mkdir()
    data = os.urandom(1 << 20) * 24

    def write():
        with open(source / "out.log", "ab", buffering=0) as file:
            for start in range(0, len(data), 40_001):
                file.write(data[start : start + 40_001])

    files, mirror = SliceFiles(str(source)), Mirror(str(tmp_path), 0)
    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive() or files.pieces(mirror.offsets):
        before = dict(mirror.offsets)
        pieces = files.pieces(before)
        mirror.take(pieces)
        if behind := files.longest(before, pieces):
            mirror.go_on(behind, *files.blocks(behind, before, pieces, 10))
    writer.join()
    assert (tmp_path / "out.log").read_bytes() == data


def after(act):
    """Something that happens while somebody waits."""
    timer = threading.Timer(0.05, act)
    timer.start()
    return timer


def waited(changes, also=-1):
    began = time.monotonic()
    changes.wait(LONG_S, also)
    return time.monotonic() - began


def test_a_change_ends_the_wait(tmp_path):
    changes = Changes(str(tmp_path), "journal")
    for name in ("out.log", "journal"):
        changes.looked()
        act = after(lambda name=name: written(tmp_path, name, b"x"))
        assert waited(changes) < LONG_S / 2
        act.join()


def test_nobody_waits_after_the_end(tmp_path):
    changes = Changes(str(tmp_path), "journal")
    act = after(changes.wake)
    assert waited(changes) < LONG_S / 2
    act.join()
    assert waited(changes) < LONG_S / 2


def test_without_means_to_watch_it_is_looked_at_now_and_then(tmp_path):
    """The kernel gives a user only so many watches: then a wait is short."""
    changes = Changes(str(tmp_path / "missing"), "journal")
    assert waited(changes) < LONG_S / 2


def test_something_else_to_be_heard_ends_the_wait(tmp_path):
    reader, writer = os.pipe()
    try:
        changes = Changes(str(tmp_path), "journal")
        act = after(lambda: os.write(writer, b"x"))
        assert waited(changes, reader) < LONG_S / 2
        act.join()
    finally:
        os.close(reader)
        os.close(writer)
