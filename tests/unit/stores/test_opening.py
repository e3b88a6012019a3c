"""Opening a store by its URL."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from runyard.domain import errors
from runyard.stores.opening import open_store


@pytest.mark.parametrize(
    "url", ["", "sqlite://", "sqlite:///", "mysql://x/y", "/some/file.db", "postgresql:/x"]
)
def test_a_url_that_names_no_store(url):
    with pytest.raises(errors.BadSettings) as refused:
        open_store(url)
    assert refused.value.params["name"] == "database_url"


def test_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///here.db").close()
    assert (tmp_path / "here.db").exists()


def test_a_path_with_odd_signs(tmp_path):
    folder = tmp_path / "a b?c#d%41ü"
    folder.mkdir()
    store = open_store(f"sqlite:///{folder}/x.db")
    with store.read() as reader:
        assert reader.keys() == []
    store.close()
    assert (folder / "x.db").exists()


def test_without_create_a_missing_database_stays_missing(tmp_path, postgres_url):
    with pytest.raises(errors.NotFound):
        open_store(f"sqlite:///{tmp_path}/none.db", create=False)
    assert os.listdir(tmp_path) == []
    with pytest.raises(errors.NotFound):
        open_store(postgres_url, create=False)


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "x.db").write_text("these are my notes, and they are long enough " * 50)
    with pytest.raises(errors.DataDirUnusable):
        open_store(f"sqlite:///{tmp_path}/x.db")
    assert (tmp_path / "x.db").read_text().startswith("these are my notes")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(errors.DataDirUnusable):
        open_store(f"sqlite:///{tmp_path}/none/x.db")


def test_a_postgres_that_is_not_there():
    with pytest.raises(errors.StartRefused) as refused:
        open_store("postgresql://somebody:s3cret@127.0.0.1:1/x")
    assert "s3cret" not in str(refused.value)


def test_a_folder_that_cannot_be_written(tmp_path):
    """Tried as another user, since root may write anywhere."""
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(errors.DataDirUnusable):
            open_store(f"sqlite:///{tmp_path}/x.db")
        return
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o755)
    program = (
        "import os, sys\n"
        "from runyard.domain import errors\n"
        "from runyard.stores.opening import open_store\n"
        "from runyard.stores import sqlite\n"
        "os.chdir(sys.argv[1])\n"
        "os.setuid(65534)\n"
        "try: open_store('sqlite:///x.db')\n"
        "except errors.DataDirUnusable: sys.exit(7)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder)], check=False)
    assert done.returncode == 7
