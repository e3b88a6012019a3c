"""save_checkpoint: whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest

import runyard.report as report
from runyard.report import atomic_save


def writer(content: bytes):
    def save(path):
        with open(path, "wb") as file:
            file.write(content)

    return save


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_and_its_manifest(tmp_path, monkeypatch):
    """R39: a checkpoint that can be trusted later."""
    metrics = tmp_path / "m.jsonl"
    monkeypatch.setenv("RUNYARD_METRICS_FILE", str(metrics))
    folder = tmp_path / "made" / "for it"
    where = report.save_checkpoint(writer(b"weights"), folder / "a.pt", 7, loss=0.5)
    assert where == str(folder / "a.pt")
    assert (folder / "a.pt").read_bytes() == b"weights"
    assert names(folder) == ["a.pt", "a.pt.manifest.json"]
    manifest = json.loads((folder / "a.pt.manifest.json").read_text())
    assert manifest["v"] == 1
    assert manifest["step"] == 7
    assert manifest["files"] == {
        "a.pt": {"size": 7, "sha256": hashlib.sha256(b"weights").hexdigest()}
    }
    begun, line = map(json.loads, metrics.read_text().splitlines())
    assert begun["phase"] == "saving"
    assert (line["kind"], line["path"], line["step"]) == ("checkpoint", where, 7)


def test_saving_again_replaces_file_and_manifest(tmp_path):
    for content in (b"old", b"newer"):
        report.save_checkpoint(writer(content), tmp_path / "a.pt")
    manifest = json.loads((tmp_path / "a.pt.manifest.json").read_text())
    assert manifest["files"]["a.pt"]["sha256"] == hashlib.sha256(b"newer").hexdigest()
    assert "step" not in manifest


def test_without_a_manifest_the_old_one_goes(tmp_path):
    report.save_checkpoint(writer(b"old"), tmp_path / "a.pt")
    report.save_checkpoint(writer(b"new"), tmp_path / "a.pt", manifest=False)
    assert names(tmp_path) == ["a.pt"]


def test_a_directory_carries_its_manifest_inside(tmp_path):
    def save(path):
        os.makedirs(f"{path}/optimizer")
        writer(b"model")(f"{path}/model.safetensors")
        writer(b"state")(f"{path}/optimizer/state.pt")

    for _ in range(2):  # the second replaces the first
        report.save_checkpoint(save, tmp_path / "checkpoint-10", 10)
    assert names(tmp_path) == ["checkpoint-10"]
    folder = tmp_path / "checkpoint-10"
    manifest = json.loads((folder / atomic_save.MANIFEST_INSIDE).read_text())
    assert set(manifest["files"]) == {"model.safetensors", "optimizer/state.pt"}


def test_a_failing_saver_leaves_the_old_one_and_nothing_else(tmp_path):
    report.save_checkpoint(writer(b"old"), tmp_path / "a.pt")

    def save(path):
        writer(b"half of")(path)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        report.save_checkpoint(save, tmp_path / "a.pt")
    assert (tmp_path / "a.pt").read_bytes() == b"old"
    assert names(tmp_path) == ["a.pt", "a.pt.manifest.json"]


def test_a_saver_that_writes_elsewhere_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="wrote nothing"):
        report.save_checkpoint(lambda _path: None, tmp_path / "a.pt")
    assert names(tmp_path) == []


def test_the_saver_sees_the_suffix_it_will_have(tmp_path):
    seen = []

    def save(path):
        seen.append(path)
        writer(b"x")(path)

    report.save_checkpoint(save, tmp_path / ("long" * 50 + ".keras"))
    assert seen[0].endswith(".keras")
    assert os.path.dirname(seen[0]) == str(tmp_path)
    assert os.path.basename(seen[0]).startswith(atomic_save.PARTIAL_PREFIX)


def test_killed_in_the_middle_of_saving(tmp_path):
    """R39: kill -9 while the second checkpoint is half written; the first is untouched."""
    program = """
import os, signal, sys
import runyard.report as report
def half(path):
    with open(path, "wb") as file:
        file.write(b"half"); file.flush()
    print("half", flush=True)
    signal.pause()
report.save_checkpoint(lambda path: open(path, "wb").write(b"whole"), "a.pt", 1)
report.save_checkpoint(half, "a.pt", 2)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout.readline() == b"half\n"
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    assert (tmp_path / "a.pt").read_bytes() == b"whole"
    left = [name for name in names(tmp_path) if not name.startswith("a.pt")]
    assert all(name.startswith(atomic_save.PARTIAL_PREFIX) for name in left)
