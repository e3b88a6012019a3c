"""Files below a folder that somebody else writes to."""

from __future__ import annotations

import pytest

from runyard.engine.folder_walk import files_below


@pytest.fixture
def folder(tmp_path):
    for path in ("b", "a/b/c/deep", "a/x", "c-10", "c-9"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    (tmp_path / "to-a-file").symlink_to(tmp_path / "b")
    (tmp_path / "to-a-folder").symlink_to(tmp_path / "a")
    return tmp_path


def paths(folder, deepest, **options):
    return [path for path, _ in files_below(str(folder), deepest, **options)]


def test_files_by_name_with_their_size_and_without_links(folder):
    assert paths(folder, 9) == ["a/b/c/deep", "a/x", "b", "c-10", "c-9"]
    assert [told.st_size for _, told in files_below(str(folder), 0)] == [1, 4, 3]


def test_only_so_deep(folder):
    assert paths(folder, 0) == ["b", "c-10", "c-9"]
    assert paths(folder, 1) == ["a/x", "b", "c-10", "c-9"]


def test_the_last_names_first(folder):
    assert paths(folder, 1, last_name_first=True) == ["c-9", "c-10", "b", "a/x"]


def test_a_folder_that_is_not_there_is_empty(tmp_path):
    assert paths(tmp_path / "nowhere", 3) == []
