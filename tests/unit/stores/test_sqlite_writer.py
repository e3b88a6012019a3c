"""What is special to SQLite: one writer, group commits, trouble with the disk, copies."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
import threading

import pytest

from runyard.domain import errors
from runyard.domain.states import JobStatus
from runyard.stores import sqlite_writer
from runyard.stores.base import JobFilter
from runyard.stores.sqlite import SqliteStore
from runyard.testing.store_samples import eventually, new_job, submit, submit_one


def _levels(monkeypatch):
    """The size and the sync level of every commit from now on: 1 NORMAL, 2 FULL."""
    seen = []
    commit = sqlite_writer.Writer._commit

    def watched(writer, group):
        outcomes = commit(writer, group)
        [(level,)] = writer._connection.execute("PRAGMA synchronous").fetchall()
        seen.append((len(group), level))
        return outcomes

    monkeypatch.setattr(sqlite_writer.Writer, "_commit", watched)
    return seen


def test_durable_writes_are_synced_and_others_are_not(store, monkeypatch):
    seen = _levels(monkeypatch)
    store.write(lambda _: None, durable=False)
    store.write(lambda _: None, durable=True)
    store.write(lambda _: None, durable=False)
    assert seen == [(1, 1), (1, 2), (1, 1)]


def test_writes_that_wait_together_are_committed_together(store, monkeypatch):
    seen = _levels(monkeypatch)
    gate = threading.Event()
    first = store.write_soon(lambda _: gate.wait(30), durable=False)
    eventually(lambda: first.running())
    others = [store.write_soon(lambda _: None, durable=n == 7) for n in range(20)]
    gate.set()
    for other in others:
        other.result(30)
    assert seen == [(1, 1), (20, 2)]


def test_the_file_is_set_up_for_one_writer_and_many_readers(store, query):
    assert query("PRAGMA journal_mode") == [("wal",)]
    with store.read() as reader:
        connection = reader._driver.connection
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
        with pytest.raises(sqlite3.OperationalError):
            connection.execute("DELETE FROM training_jobs")


def test_the_writing_thread_cannot_wait_for_itself(store):
    with pytest.raises(RuntimeError, match="cannot wait"):
        store.write(lambda _: store.write(lambda _: None))
    assert store.write(lambda _: 1) == 1


def test_a_full_disk_is_told_and_survived(store, query):
    """A clear error, nothing half-written, and work goes on after it."""
    kept = submit_one(store)
    [(pages,)] = query("PRAGMA page_count")

    def limit(pages):
        def work(tx):
            tx._driver.connection.execute(f"PRAGMA max_page_count = {pages}")

        store.write(work)

    limit(pages + 2)
    with pytest.raises(errors.DiskFull):
        submit(store, *(new_job(description="x" * 5000) for _ in range(50)))
    with store.read() as reader:
        assert [job.id for job in reader.jobs(JobFilter()).jobs] == [kept.id]
    limit(1_000_000)
    submit_one(store)


def test_one_that_fills_the_disk_does_not_fail_the_others(store, query):
    [(pages,)] = query("PRAGMA page_count")
    store.write(
        lambda tx: tx._driver.connection.execute(f"PRAGMA max_page_count = {pages + 8}") and None
    )
    gate = threading.Event()
    first = store.write_soon(lambda _: gate.wait(30))
    eventually(lambda: first.running())
    big = [new_job(description="x" * 5000) for _ in range(50)]
    small, large, last = (
        store.write_soon(lambda tx: tx.set_flag("a", "1")),
        store.write_soon(lambda tx: tx.insert_jobs(big)),
        store.write_soon(lambda tx: tx.set_flag("b", "1")),
    )
    gate.set()
    small.result(30)
    last.result(30)
    with pytest.raises(errors.DiskFull):
        large.result(30)
    with store.read() as reader:
        assert (reader.flag("a"), reader.flag("b")) == ("1", "1")
        assert reader.jobs(JobFilter()).total == 0


def test_writes_that_the_system_refuses_are_told_and_survived(path):
    """A limit on file sizes stands in for a disk that fails; a process of its own has it."""
    program = """
import resource, sys
from runyard.domain import errors
from runyard.stores.sqlite import SqliteStore
from runyard.testing.store_samples import new_job, submit, submit_one
store = SqliteStore(sys.argv[1])
kept = submit_one(store)
before = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, before[1]))
refused = 0
for _ in range(3):
    try:
        submit(store, *(new_job(description="x" * 5000) for _ in range(200)))
    except errors.Unavailable:
        refused += 1
resource.setrlimit(resource.RLIMIT_FSIZE, before)
later = submit_one(store)
with store.read() as reader:
    assert [event.job_id for event in reader.events()] == [kept.id, later.id]
store.close()
sys.exit(0 if refused == 3 else 5)
"""
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert soft == resource.RLIM_INFINITY or soft > 10_000_000
    done = subprocess.run([sys.executable, "-c", program, path], check=False)
    assert done.returncode == 0


def test_a_store_that_became_read_only(store):
    store.write(lambda tx: tx._driver.connection.execute("PRAGMA query_only = ON") and None)
    with pytest.raises(errors.StoreReadOnly):
        submit_one(store)
    store._writer._connection.execute("PRAGMA query_only = OFF")
    submit_one(store)


def test_what_was_acknowledged_survives_kill_9(path):
    """Durable or not: a sync is needed for a power cut only."""
    program = """
import os, signal, sys
from runyard.stores.sqlite import SqliteStore
from runyard.testing.store_samples import new_job
store = SqliteStore(sys.argv[1])
for number in range(200):
    job = new_job()
    store.write(lambda tx: tx.insert_jobs([job]), durable=number % 2 == 0)
    print(job.ref, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == -9
    told = done.stdout.split()
    store = SqliteStore(path)
    try:
        with store.read() as reader:
            assert reader.count_by_status()[JobStatus.PENDING] == len(told) == 200
            assert all(reader.job(ref) for ref in told)
    finally:
        store.close()


def test_a_backup_is_a_whole_store(store, tmp_path):
    jobs = submit(store, *(new_job() for _ in range(50)))
    copy = tmp_path / "copy.db"
    stop = threading.Event()

    def keep_writing():
        while not stop.is_set():
            submit_one(store)

    writing = threading.Thread(target=keep_writing)
    writing.start()
    try:
        store.backup(str(copy))
    finally:
        stop.set()
        writing.join()
    assert copy.stat().st_mode & 0o777 == 0o600
    restored = SqliteStore(str(copy), create=False)
    try:
        with restored.read() as reader:
            total = reader.jobs(JobFilter()).total
            assert total >= 50
            assert len(reader.events(limit=100_000)) == total
            assert reader.job(jobs[0].ref) == jobs[0]
        submit_one(restored)
    finally:
        restored.close()
    assert sorted(os.listdir(tmp_path))[0] == "copy.db"
    assert not [name for name in os.listdir(tmp_path) if "unfinished" in name]


def test_a_backup_that_cannot_be_written(store, tmp_path):
    with pytest.raises(errors.RunyardError):
        store.backup(str(tmp_path / "no" / "copy.db"))


def test_the_log_is_copied_when_nobody_writes(store, path):
    submit(store, *(new_job(description="x" * 2000) for _ in range(200)))
    before = os.stat(path).st_size
    eventually(lambda: os.stat(path).st_size > before)


def test_closing_leaves_one_file(path):
    store = SqliteStore(path)
    submit_one(store)
    store.close()
    store.close()
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]


def test_times_are_readable_in_the_file(store, query):
    job = submit_one(store, submitted_at=1_790_000_000.5)
    assert job.submitted_at == 1_790_000_000.5
    assert query("SELECT submitted_at FROM training_jobs") == [("2026-09-21 14:13:20.500000",)]
