"""Removing temporary directories, whatever a job made of them."""

import os

from runyard.supervisor import temporary


def test_absent_is_removed(tmp_path):
    assert temporary.remove(str(tmp_path / "none"))


def test_full_tree(tmp_path):
    deep = tmp_path / "tmp"
    (deep / "a" / "b").mkdir(parents=True)
    (deep / "a" / "b" / "file").write_text("x")
    os.mkfifo(deep / "fifo")
    (deep / "broken").symlink_to("nowhere")
    (deep / "a").chmod(0o500)
    assert temporary.remove(str(deep))
    assert not deep.exists()


def test_links_are_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    inside = tmp_path / "tmp"
    inside.mkdir()
    (inside / "link").symlink_to(outside)
    assert temporary.remove(str(inside))
    assert (outside / "kept").exists()


def test_a_link_in_its_place_is_unlinked(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "tmp").symlink_to(outside)
    assert temporary.remove(str(tmp_path / "tmp"))
    assert outside.exists()


def test_deeper_than_the_stack(tmp_path):
    """A job can nest deeper than a path can be written."""
    top = tmp_path / "tmp"
    top.mkdir()
    here = os.getcwd()
    os.chdir(top)
    try:
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
    assert temporary.remove(str(top))
    assert not top.exists()
