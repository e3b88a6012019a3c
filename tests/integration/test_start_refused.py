"""What a server says when it cannot start, and that it harms nothing by trying."""

import json
import os
import socket
import sqlite3
import sys

import pytest

from runyard import data_dir
from runyard.domain import errors
from runyard.stores import schema
from runyard.stores.opening import open_store
from yards import RunningYard, free_port, keepers_of, until


def refused(yard: RunningYard) -> str:
    """What it said; fails if it started, or ended without the one line that tells why."""
    code = yard.spawn().wait(100)
    said = yard.said()
    assert code == 1, f"exit code {code}: {said}"
    assert "Traceback" not in said, said
    line = said.strip().splitlines()[-1]
    assert line.startswith("runyard: "), said
    assert line.endswith("]")
    return line


def dump(path):
    with sqlite3.connect(path) as connection:
        lines = list(connection.iterdump())
    connection.close()
    return lines


def test_two_servers_one_directory_refused(make_yard):
    """The first is named, and goes on as if nothing had happened."""
    first = make_yard().start()
    ref = first.submit(["sleep", "600"], grace_s=1)
    first.wait(ref, "running")
    told = (first.data / "server.json").read_text()
    second = make_yard(data_dir=first.data)
    line = refused(second)
    assert line.endswith("[data_dir_in_use]")
    assert str(first.process.pid) in line
    assert (first.data / "server.json").read_text() == told
    assert first.status(ref) == "running"
    assert first.wait(first.submit(["true"]), "completed")


def test_a_newer_schema_is_left_alone(make_yard):
    """A database of a later release is neither read nor changed."""
    yard = make_yard().start()
    ref = yard.submit(["true"])
    yard.wait(ref, "completed")
    yard.stop()
    database = yard.data / "runyard.db"
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    before = dump(database)
    line = refused(yard)
    assert line.endswith("[schema_too_new]")
    assert "9999" in line
    assert dump(database) == before
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (schema.HEAD,))
    connection.close()
    assert yard.start().status(ref) == "completed"


def test_a_newer_schema_in_postgresql(make_yard, postgres_url):
    import psycopg

    yard = make_yard("--database-url", postgres_url).start()
    yard.stop()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert refused(yard).endswith("[schema_too_new]")


def test_a_file_that_is_no_database(make_yard):
    yard = make_yard()
    yard.data.mkdir(parents=True)
    (yard.data / "runyard.db").write_bytes(b"these are notes of mine\n" * 400)
    refused(yard)
    assert (yard.data / "runyard.db").read_bytes() == b"these are notes of mine\n" * 400


def test_a_database_that_does_not_answer(make_yard):
    port = free_port()
    yard = make_yard("--database-url", f"postgresql://nobody:word@127.0.0.1:{port}/none")
    line = refused(yard)
    assert "word" not in line, "the password is told to everybody"


@pytest.mark.parametrize("what", ["directory", "its_parent", "database"])
def test_a_read_only_data_directory(person, what):
    """Seen by somebody whom file permissions hold."""
    folder = person.folder(f"read-only-{what}")
    data = folder / "data"
    yard = RunningYard(folder, data_dir=data, python=person.python, becoming=person.becoming)
    try:
        if what != "its_parent":
            yard.start()
            yard.stop()
        closed = {"directory": data, "its_parent": folder, "database": data / "runyard.db"}[what]
        closed.chmod(0o400 if closed.is_file() else 0o500)
        line = refused(yard)
        closed.chmod(0o700)
        wanted = "[store_read_only]" if what == "database" else "[data_dir_unusable]"
        assert line.endswith(wanted)
        assert str(data) in line
    finally:
        yard.stop()


def test_a_file_that_cannot_be_written(make_yard):
    """Whatever goes wrong at the start is one line, not a traceback."""
    yard = make_yard()
    (yard.data / "server.json.new").mkdir(parents=True)
    assert "server.json.new" in refused(yard)


def test_a_port_that_is_taken(make_yard):
    """Found before anything of the data directory is touched but its lock."""
    yard = make_yard()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", yard.port))
        taken.listen()
        line = refused(yard)
    assert line.endswith("[address_in_use]")
    assert str(yard.port) in line
    assert not (yard.data / "server.json").exists()
    yard.start()


def test_open_to_others_only_with_keys(make_yard):
    """R54: 0.0.0.0 is refused until a person has made a key."""
    yard = make_yard("--host", "0.0.0.0")
    line = refused(yard)
    assert line.endswith("[keys_required]")
    local = make_yard(data_dir=yard.data).start()
    assert local.cli("keys", "create", "ada").returncode == 0
    local.stop()
    yard.start()
    told = json.loads((yard.data / "server.json").read_text())
    assert told["url"] == f"http://127.0.0.1:{yard.port}"


def test_a_server_that_is_refused_starts_nothing(make_yard):
    """R54: what waits goes on waiting, and no keeper is left."""
    local = make_yard(max_concurrent=1).start()
    local.wait(local.submit(["sleep", "600"], grace_s=1), "running")
    waiting = local.submit(["sh", "-c", "exit 7"])
    assert local.terminate() == 0
    until(lambda: not keepers_of(local.data))
    assert refused(make_yard("--host", "0.0.0.0", data_dir=local.data)).endswith("[keys_required]")
    assert keepers_of(local.data) == []
    assert not (local.data / "server.json").exists()
    assert not (local.data / "attempts" / f"{waiting}.1").exists()
    store = open_store(f"sqlite:///{local.data}/runyard.db")
    with store.read() as reader:
        job = reader.job(waiting)
        assert (job.status, job.attempt_number) == ("pending", 0)
    store.close()
    local.start()
    local.wait(waiting, "failed")


def test_a_server_that_stops_is_no_longer_named(make_yard):
    """Nobody sends a key to whoever has the port next; a kept job changes nothing about that."""
    yard = make_yard("--on-shutdown", "keep").start()
    assert json.loads((yard.data / "server.json").read_text())["pid"] == yard.process.pid
    ref = yard.submit(["sleep", "600"], grace_s=1)
    yard.wait(ref, "running")
    assert yard.terminate() == 0
    assert not (yard.data / "server.json").exists()
    yard.start()
    assert yard.cancel(ref).ok
    assert (yard.data / "server.json").exists()


@pytest.mark.parametrize(
    ("flags", "env", "named"),
    [
        (["--max-concurrent", "0"], {}, "max_concurrent"),
        ([], {"RUNYARD_GATE_CPU": "200"}, "gate_cpu"),
        ([], {"RUNYARD_RETRY_DELAYS": "soon"}, "retry_delays"),
        (["--executor", "teleport"], {}, "executors"),
        (["--host", "no.such.host.invalid"], {}, "host"),
        (["--database-url", "oracle://x"], {}, "database_url"),
        (["--port-range", "5-2"], {}, "port_range"),
    ],
)
def test_bad_settings_are_named(make_yard, flags, env, named):
    line = refused(make_yard(*flags, env=env))
    assert f"The setting {named} is not valid" in line
    assert line.endswith("[bad_settings]")


def test_a_bad_settings_file_is_named(make_yard):
    yard = make_yard()
    yard.data.mkdir(parents=True)
    config = yard.data / "runyard.toml"
    config.write_text("max_concurent = 3\n")
    assert "max_concurent" in refused(yard)
    config.write_text("max_concurrent = = 3\n")
    assert str(config) in refused(yard)
    config.write_bytes(b"\xff\xfe")
    assert str(config) in refused(yard)


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
files:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local ext4 rw 0 0
sshfs /mnt/my\\040disk fuse.sshfs rw 0 0
files:/d /mnt/données nfs rw 0 0
overlay /var/lib/docker/merged overlay rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/data", "ext4"),
        ("/home/ada/.runyard", "nfs4"),
        ("/home", "nfs4"),
        ("/home2/x", "ext4"),
        ("/home/local/data", "ext4"),
        ("/mnt/my disk/data", "fuse.sshfs"),
        ("/mnt/données/x", "nfs"),
    ],
)
def test_the_file_system_of_a_path(tmp_path, path, kind):
    """The longest mount point that holds the path decides."""
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert data_dir.file_system_kind(path, str(mounts)) == kind
    assert data_dir.is_network(kind) == (kind in ("nfs", "nfs4", "fuse.sshfs"))


def test_the_file_system_behind_a_link(tmp_path):
    """A link into a network file system does not make it local."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nfiles:/x {tmp_path.resolve()}/net nfs rw 0 0\n")
    (tmp_path / "net").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "net")
    assert data_dir.file_system_kind(tmp_path / "link" / "data", str(mounts)) == "nfs"


def test_a_network_file_system_is_refused_with_a_proposal(monkeypatch, tmp_path):
    monkeypatch.setattr(data_dir, "file_system_kind", lambda _: "nfs4")
    with pytest.raises(errors.NetworkFileSystem) as caught:
        data_dir.DataDir.open(tmp_path / "data")
    assert caught.value.params["kind"] == "nfs4"
    assert caught.value.params["proposal"] in caught.value.message
    assert not (tmp_path / "data" / "server.lock").exists()


def test_a_data_directory_of_several_words_and_far_down(make_yard, tmp_path):
    """A unix socket's address holds 108 bytes; a path may be longer. long_path_socket"""
    deep = tmp_path / "with a space" / ("d" * 100) / ("e" * 100) / "données"
    yard = make_yard(data_dir=deep).start()
    assert yard.wait(yard.submit(["true"]), "completed")


def test_the_lock_goes_with_the_process(make_yard):
    """A server that was killed does not keep the next one out, whatever its lock file says."""
    yard = make_yard().start()
    yard.kill9()
    assert (yard.data / "server.lock").read_text().strip() == str(yard.process.pid)
    yard.start()
    assert yard.wait(yard.submit([sys.executable, "-c", "pass"]), "completed")
    until(lambda: os.path.exists(yard.data / "server.json"))
