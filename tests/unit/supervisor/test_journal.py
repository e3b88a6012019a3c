"""The journal: whole records or none, first exit wins, readers never trip."""

import os

import pytest

from runyard.supervisor import journal, liveness, protocol

SPEC = {"attempt_id": "job-a.1", "tag": 7, "argv": ["true"], "env": {}}


@pytest.fixture
def folder(tmp_path):
    path = str(tmp_path / "attempts" / "job-a.1")
    assert journal.create(path, SPEC)
    return path


def raw(folder):
    with open(f"{folder}/{protocol.JOURNAL}", "rb") as file:
        return file.read()


def write_raw(folder, data):
    with open(f"{folder}/{protocol.JOURNAL}", "ab") as file:
        file.write(data)


def test_spec_comes_back(folder):
    read = journal.read(folder)
    assert read.spec["argv"] == ["true"]
    assert read.spec["v"] == protocol.VERSION
    assert (read.supervisor, read.job, read.main_exit, read.exit) == (None, None, None, None)


def test_create_again_changes_nothing(folder):
    before = raw(folder)
    assert not journal.create(folder, {**SPEC, "argv": ["false"]})
    assert raw(folder) == before


def test_create_completes_a_journal_without_spec(tmp_path):
    folder = str(tmp_path / "job-b.1")
    os.mkdir(folder)
    write_raw(folder, b"")
    assert journal.create(folder, SPEC)
    assert journal.read(folder).spec["tag"] == 7


def test_read_without_journal(tmp_path):
    with pytest.raises(FileNotFoundError):
        journal.read(str(tmp_path))


@pytest.mark.parametrize("cut", [1, 5, 9, 20, -2])
def test_torn_last_record_is_ignored_and_not_joined(folder, cut):
    line = journal.encode(journal.new_record("exit", {"code": 0}))
    write_raw(folder, line[:cut])
    read = journal.read(folder)
    assert read.torn
    assert read.exit is None
    assert journal.append(folder, "exit", {"code": 3}, once=True)
    assert journal.read(folder).exit["code"] == 3


def test_record_without_its_end_of_line_counts(folder):
    """Otherwise the next writer would complete it, and there were two exit records."""
    write_raw(folder, journal.encode(journal.new_record("exit", {"code": 0}))[:-1])
    assert journal.read(folder).exit["code"] == 0
    assert not journal.append(folder, "exit", {"code": 3}, once=True)


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"garbage\n",
        b"00000000 {}\n",
        b"zzzzzzzz {}\n",
        b'%08x {"kind":"exit"}\n' % 0,
        b"\xff\xfe\x00\n",
    ],
)
def test_damaged_records_are_skipped(folder, line):
    write_raw(folder, line)
    journal.append(folder, "job", {"pid": 5})
    read = journal.read(folder)
    assert read.job["pid"] == 5
    assert read.exit is None


@pytest.mark.parametrize("record", [[1], {"v": 1}, {"v": "1", "kind": "exit"}, {"kind": "exit"}])
def test_records_of_the_wrong_shape_are_skipped(folder, record):
    write_raw(folder, journal.encode(record))
    read = journal.read(folder)
    assert read.damaged == 1
    assert read.exit is None


def test_other_versions_are_counted_apart(folder):
    write_raw(folder, journal.encode({"v": 2, "kind": "exit", "code": 0}))
    read = journal.read(folder)
    assert (read.foreign, read.damaged, read.exit) == (1, 0, None)


def test_first_exit_wins(folder):
    assert journal.append(folder, "exit", {"code": 1}, once=True, sync=True)
    assert not journal.append(folder, "exit", {"code": 2}, once=True)
    assert not journal.append(folder, "exit", {"code": 2})
    assert journal.read(folder).exit["code"] == 1


def test_nothing_follows_the_exit_record(folder):
    journal.append(folder, "exit", {"code": 1})
    assert not journal.append(folder, "supervisor", {"pid": 1}, once=True)


def test_once(folder):
    assert journal.append(folder, "main_exit", {"code": 1}, once=True)
    assert not journal.append(folder, "main_exit", {"code": 2}, once=True)
    assert journal.append(folder, "stuck", {"processes": [1]})
    assert journal.append(folder, "stuck", {"processes": [2]})
    assert journal.read(folder).stuck["processes"] == [2]


def test_unless_is_asked_under_the_lock(folder):
    assert not journal.append(folder, "exit", {}, unless=lambda: True)
    assert journal.append(folder, "exit", {}, unless=lambda: False)


def test_appender_sees_what_others_wrote(folder):
    fd = os.open(f"{folder}/{protocol.JOURNAL}", os.O_RDWR | os.O_APPEND)
    appender = journal.Appender(fd)
    assert appender.append("supervisor", {"pid": 1}, once=True)
    journal.append(folder, "exit", {"code": 9}, once=True)
    assert not appender.append("job", {"pid": 2})
    assert appender.journal.exit["code"] == 9
    os.close(fd)


def test_large_records_and_surrogates(folder):
    fields = {"env": {"A": "x" * 600_000, "B": "a\udcff"}}
    journal.append(folder, "job", fields)
    journal.append(folder, "exit", {"code": 0})
    read = journal.read(folder)
    assert read.job["env"] == fields["env"]
    assert read.exit["code"] == 0


def test_liveness_is_seen_by_another_process_only(folder):
    """The lock is the holder's process: a reader in another one sees it, its death frees it."""
    told, tell = os.pipe()
    hold, release = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(release)
        fd = os.open(f"{folder}/{protocol.JOURNAL}", os.O_RDWR)
        os.write(tell, b"y" if liveness.hold(fd) else b"n")
        os.read(hold, 1)
        os._exit(0)
    os.close(hold)
    assert os.read(told, 1) == b"y"
    assert liveness.supervisor_alive(folder)
    fd = os.open(f"{folder}/{protocol.JOURNAL}", os.O_RDWR)
    assert not liveness.hold(fd)
    os.close(fd)
    os.close(release)
    os.waitpid(pid, 0)
    assert not liveness.supervisor_alive(folder)
    for end in (told, tell):
        os.close(end)


def test_no_journal_is_not_alive(tmp_path):
    assert not liveness.supervisor_alive(str(tmp_path))
