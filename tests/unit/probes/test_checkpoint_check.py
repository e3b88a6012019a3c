"""Whether a checkpoint is whole, told by the real program on real files (R19)."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

import checkpoint_files as made
from runyard.probes import checkpoint_check
from runyard.probes.checkpoint_program import CheckpointProgram
from runyard.report.atomic_save import save_checkpoint


def check(*paths, seconds=20.0, settle_s=0.0):
    found = CheckpointProgram().check([str(p) for p in paths], seconds=seconds, settle_s=settle_s)
    return found[0] if len(paths) == 1 else found


def verdict(path):
    found = check(path)
    return found.verdict, (found.why or {}).get("code")


# single files


@pytest.mark.parametrize(("name", "family"), [("a.pt", "torch"), ("step=7.ckpt", "lightning")])
def test_a_whole_torch_file_is_good(tmp_path, name, family):
    path = made.torch_file(tmp_path / name)
    found = check(path)
    assert (found.verdict, found.family, found.why) == ("good", family, None)
    assert found.size_bytes == path.stat().st_size
    assert found.saved_at == pytest.approx(path.stat().st_mtime)


@pytest.mark.parametrize("part", [0.01, 0.5, 0.9, 0.999])
def test_a_truncated_torch_file_is_bad(tmp_path, part):
    path = made.truncate(made.torch_file(tmp_path / "a.pt"), part)
    assert verdict(path) == ("bad", "truncated")


def test_a_torch_file_with_a_hole_in_it_is_bad(tmp_path):
    path = made.torch_file(tmp_path / "a.pt")
    data = bytearray(path.read_bytes())
    place = data.index(b"PK\x03\x04", 200)
    data[place : place + 400] = bytes(400)
    path.write_bytes(data)
    assert verdict(path) == ("bad", "damaged")


def test_an_empty_file_and_one_of_zeros_are_bad(tmp_path):
    (tmp_path / "a.pt").write_bytes(b"")
    (tmp_path / "b.pt").write_bytes(bytes(10_000))
    assert verdict(tmp_path / "a.pt") == ("bad", "empty_file")
    assert verdict(tmp_path / "b.pt") == ("bad", "only_zeros")


def test_a_pickle_is_not_loaded_and_cannot_be_proven(tmp_path):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    path = tmp_path / "a.pt"
    path.write_bytes(pickle.dumps(Harm(), protocol=2))
    assert verdict(path) == ("unknown", "format_not_checked")
    assert not (tmp_path / "harm").exists()


def test_safetensors(tmp_path):
    path = made.safetensors_file(tmp_path / "a.safetensors", ("x", "y"))
    assert verdict(path) == ("good", None)
    made.truncate(path, 0.9)
    assert verdict(path) == ("bad", "truncated")
    path.write_bytes(b"\xff" * 100)
    assert verdict(path) == ("bad", "damaged")
    path.write_bytes((10).to_bytes(8, "little") + b"{not json}")
    assert verdict(path) == ("bad", "damaged")
    made.safetensors_file(path)
    path.write_bytes(path.read_bytes() + b"more")
    assert verdict(path) == ("bad", "damaged")


def test_hdf5_is_as_long_as_it_says(tmp_path):
    head = b"\x89HDF\r\n\x1a\n" + bytes([0, 0, 0, 0, 0, 8, 8, 0]) + bytes(24)
    whole = (head + (4096).to_bytes(8, "little")).ljust(4096, b"x")
    (tmp_path / "a.h5").write_bytes(whole)
    assert verdict(tmp_path / "a.h5") == ("good", None)
    (tmp_path / "a.h5").write_bytes(whole[:4000])
    assert verdict(tmp_path / "a.h5") == ("bad", "truncated")
    (tmp_path / "b.keras").write_bytes(b"something else")
    assert verdict(tmp_path / "b.keras") == ("bad", "wrong_format")


# folders


@pytest.mark.parametrize("sharded", [False, True])
def test_a_whole_huggingface_folder_is_good_and_tells_its_step(tmp_path, sharded):
    path = made.huggingface_folder(tmp_path / "checkpoint-500", 500, sharded=sharded)
    found = check(path)
    assert (found.verdict, found.family, found.step) == ("good", "huggingface", 500)
    assert found.size_bytes == sum(one.stat().st_size for one in path.iterdir())


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda p: (p / "trainer_state.json").unlink(), "missing_file"),
        (lambda p: (p / "trainer_state.json").write_text('{"global_step": 5'), "damaged"),
        (lambda p: (p / "trainer_state.json").write_text('{"epoch": 5}'), "damaged"),
        (lambda p: (p / "model-00002-of-00002.safetensors").unlink(), "missing_file"),
        (lambda p: made.truncate(p / "model-00001-of-00002.safetensors"), "truncated"),
        (lambda p: made.truncate(p / "optimizer.pt"), "truncated"),
        (
            lambda p: made.safetensors_file(p / "model-00001-of-00002.safetensors", ("other",)),
            "missing_tensors",
        ),
        (lambda p: (p / "model.safetensors.index.json").write_text("{}"), "damaged"),
    ],
)
def test_a_huggingface_folder_that_lacks_something_is_bad(tmp_path, spoil, code):
    path = made.huggingface_folder(tmp_path / "checkpoint-500", 500, sharded=True)
    spoil(path)
    assert verdict(path) == ("bad", code)


def test_an_index_stands_for_its_shards(tmp_path):
    made.huggingface_folder(tmp_path, 5, sharded=True)
    index = tmp_path / "model.safetensors.index.json"
    assert verdict(index) == ("good", None)
    made.truncate(tmp_path / "model-00002-of-00002.safetensors")
    assert verdict(index) == ("bad", "truncated")


def test_a_huggingface_folder_without_weights_is_bad(tmp_path):
    path = made.huggingface_folder(tmp_path / "checkpoint-5", 5)
    (path / "model.safetensors").unlink()
    assert verdict(path) == ("bad", "missing_file")


def test_tensorflow_needs_every_part(tmp_path):
    path = made.tensorflow_files(tmp_path / "tf", "model.ckpt-100", parts=2)
    found = check(path)
    assert (found.verdict, found.family, found.size_bytes) == ("good", "tensorflow", 13)
    assert verdict(tmp_path / "tf") == ("good", None)
    (tmp_path / "tf" / "model.ckpt-100.data-00001-of-00002").unlink()
    assert verdict(path) == ("bad", "missing_file")
    assert verdict(tmp_path / "tf") == ("bad", "missing_file")


def test_orbax_needs_its_metadata(tmp_path):
    path = made.orbax_folder(tmp_path / "100")
    found = check(path)
    assert (found.verdict, found.family) == ("good", "orbax")
    (path / "_CHECKPOINT_METADATA").unlink()
    (path / "default" / "manifest.ocdbt").unlink()
    (path / "default" / "_METADATA").unlink()
    assert verdict(path)[0] != "good"


def test_a_folder_of_an_unknown_kind_cannot_be_proven_and_an_empty_one_is_bad(tmp_path):
    (tmp_path / "step-1").mkdir()
    assert verdict(tmp_path / "step-1") == ("bad", "empty_folder")
    (tmp_path / "step-1" / "weights.xyz").write_bytes(b"abc")
    assert verdict(tmp_path / "step-1") == ("unknown", "format_not_checked")


# manifests


def test_a_manifest_proves_what_no_format_can(tmp_path):
    path = tmp_path / "own.pt"
    save_checkpoint(lambda p: Path(p).write_bytes(b"own format" * 100), path, step=12)
    found = check(path)
    assert (found.verdict, found.step, found.hashed) == ("good", 12, True)
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(data)
    assert verdict(path) == ("bad", "wrong_hash")
    path.write_bytes(data[:-1])
    assert verdict(path) == ("bad", "wrong_size")


def test_a_folder_with_a_manifest(tmp_path):
    path = tmp_path / "own"

    def save(draft):
        os.mkdir(draft)
        for name in ("a", "b"):
            with open(os.path.join(draft, name), "wb") as file:
                file.write(name.encode() * 100)

    save_checkpoint(save, path, step=3)
    assert (check(path).verdict, check(path).step) == ("good", 3)
    (path / "b").write_bytes(b"c" * 100)
    assert verdict(path) == ("bad", "wrong_hash")
    (path / "b").unlink()
    assert verdict(path) == ("bad", "missing_file")


def test_a_manifest_cannot_lead_outside(tmp_path):
    (tmp_path / "secret").write_bytes(b"x")
    path = tmp_path / "in" / "a.pt"
    made.torch_file(path)
    said = {"size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    manifest = {"v": 1, "files": {"../secret": said}}
    (tmp_path / "in" / "a.pt.manifest.json").write_text(json.dumps(manifest))
    assert verdict(path) == ("bad", "damaged")


def test_hashing_ends_with_its_time_and_the_rest_still_counts(tmp_path):
    path = made.torch_file(tmp_path / "a.pt")
    save_checkpoint(lambda draft: made.torch_file(Path(draft)), path)
    found = check(path, seconds=0.0)
    assert (found.verdict, found.hashed) == ("good", False)


# what is not finished


@pytest.mark.parametrize("name", [".partial-12-1-a.pt", "tmp-checkpoint-5", "a.pt.tmp", ".tmp9"])
def test_names_of_unfinished_saves_never_count(tmp_path, name):
    assert verdict(made.torch_file(tmp_path / name)) == ("bad", "unfinished")


def test_what_was_just_written_may_not_be_finished(tmp_path):
    path = made.torch_file(tmp_path / "a.pt")
    found = check(path, settle_s=3600.0)
    assert (found.verdict, found.why["code"]) == ("unknown", "being_written")
    old = time.time() - 7200
    os.utime(path, (old, old))
    assert check(path, settle_s=3600.0).verdict == "good"


def test_gone(tmp_path):
    assert verdict(tmp_path / "nothing.pt") == ("gone", "gone")


def test_many_are_answered_in_order(tmp_path):
    paths = [made.torch_file(tmp_path / f"{n}.pt") for n in range(5)]
    made.truncate(paths[3])
    found = check(*paths)
    assert [one.path for one in found] == [str(path) for path in paths]
    assert [one.verdict for one in found] == ["good", "good", "good", "bad", "good"]


def test_a_pipe_in_the_way_does_not_hang_it(tmp_path):
    os.mkfifo(tmp_path / "a.pt")
    began = time.monotonic()
    found = CheckpointProgram().check([str(tmp_path / "a.pt")], seconds=1.0)
    assert not found or found[0].verdict != "good"
    assert time.monotonic() - began < 60


def test_the_program_needs_the_standard_library_only():
    program = Path(checkpoint_check.__file__).with_name("__main__.py")
    asked = json.dumps({"paths": [str(program)], "seconds": 1})
    argv = [sys.executable, "-I", "-S", "-B", "-X", "importtime", str(program)]
    done = subprocess.run(argv, input=asked, capture_output=True, text=True, check=True)
    ours = [line for line in done.stderr.splitlines() if "runyard." in line]
    assert ours
    assert all("runyard.probes.checkpoint_check" in line for line in ours)
