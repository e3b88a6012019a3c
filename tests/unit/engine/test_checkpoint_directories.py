"""A checkpoint directory is listed within bounds, and nothing outside of it is ever removed."""

from __future__ import annotations

import checkpoint_files as made
from runyard.domain.checkpoints import listing
from runyard.engine.checkpoint import checkpoint_listing


def found(folder):
    return {one.path: one for one in listing.find(checkpoint_listing.listed(str(folder)))}


def test_links_are_neither_listed_nor_followed(tmp_path):
    outside = made.torch_file(tmp_path / "outside" / "a.pt")
    folder = tmp_path / "in"
    made.torch_file(folder / "model_1.pt")
    (folder / "last.pt").symlink_to(folder / "model_1.pt")
    (folder / "checkpoint-5").symlink_to(outside.parent)
    assert set(found(folder)) == {"model_1.pt"}


def test_a_deep_tree_and_a_missing_folder(tmp_path):
    made.torch_file(tmp_path / "a/b/c/d/e/f/model.pt")
    assert checkpoint_listing.listed(str(tmp_path)) == []
    assert checkpoint_listing.listed(str(tmp_path / "nothing")) == []
    assert checkpoint_listing.is_empty(str(tmp_path / "nothing"))


def test_no_more_than_so_many(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_listing, "MOST_ENTRIES", 3)
    for number in range(5):
        made.torch_file(tmp_path / f"model_{number}.pt")
    listed = [one.path for one in checkpoint_listing.listed(str(tmp_path))]
    assert listed == ["model_4.pt", "model_3.pt", "model_2.pt"], "those that came last"


def test_a_folder_and_a_file_with_its_manifest_are_removed(tmp_path):
    made.huggingface_folder(tmp_path / "checkpoint-5", 5)
    path = made.torch_file(tmp_path / "model_7.pt")
    (tmp_path / "model_7.pt.manifest.json").write_text("{}")
    known = found(tmp_path)
    assert checkpoint_listing.remove(str(tmp_path), known["checkpoint-5"])
    assert checkpoint_listing.remove(str(tmp_path), known["model_7.pt"])
    assert not path.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_became_a_link_meanwhile_is_left_alone(tmp_path):
    """R19"""
    folder, outside = tmp_path / "in", tmp_path / "outside"
    made.huggingface_folder(folder / "runs" / "checkpoint-5", 5)
    known = found(folder)["runs/checkpoint-5"]
    (folder / "runs").rename(outside)
    (folder / "runs").symlink_to(outside)
    assert not checkpoint_listing.remove(str(folder), known)
    assert (outside / "checkpoint-5" / "trainer_state.json").exists()
