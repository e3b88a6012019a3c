"""Several servers on one PostgreSQL, and a PostgreSQL that goes away."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from runyard.domain import errors
from runyard.domain.events import Event
from runyard.domain.resources import GpuGrant
from runyard.domain.states import JobStatus
from runyard.stores.opening import open_store
from runyard.testing.store_samples import (
    START,
    eventually,
    new_job,
    place,
    read_job,
    scheduling,
    submit,
    submit_one,
)


@pytest.fixture
def two(postgres_url):
    stores = open_store(postgres_url), open_store(postgres_url)
    yield stores
    for store in stores:
        store.close()


def test_a_server_hears_what_the_others_did(two):
    here, there = two
    heard = []
    there.subscribe(heard.extend)
    job = submit_one(here)
    eventually(lambda: [told.job_ref for told in heard] == [job.ref])


def test_events_are_heard_in_order_while_both_write(two):
    """Ids are given in the order of the commits: none is missed by who reads after an id."""
    heard = ([], [])
    for store, list_ in zip(two, heard, strict=True):
        store.subscribe(list_.extend)
    seen_by_reading = []
    stop = threading.Event()

    def follow():
        last = 0
        while not stop.is_set():
            with two[0].read() as reader:
                found = reader.events(after=last)
            seen_by_reading.extend(told.id for told in found)
            last = found[-1].id if found else last

    following = threading.Thread(target=follow)
    following.start()

    def write(number):
        store = two[number % 2]
        job = submit_one(store)
        slow = number % 5 == 0

        def work(tx):
            tx.apply(scheduling(job))
            if slow:
                time.sleep(0.01)  # others commit meanwhile

        store.write(work)
        store.write(lambda tx: tx.append_event(job.id, Event("job_held", START, "x")))

    try:
        with ThreadPoolExecutor(8) as users:
            list(users.map(write, range(60)))
        with two[0].read() as reader:
            all_of_them = [told.id for told in reader.events()]
        assert len(all_of_them) == 180
        eventually(lambda: all(len(list_) == 180 for list_ in heard))
        eventually(lambda: len(seen_by_reading) == 180)
    finally:
        stop.set()
        following.join()
    for list_ in heard:
        assert [told.id for told in list_] == all_of_them
    assert seen_by_reading == all_of_them


def test_a_wake_reaches_the_others_and_not_oneself(two):
    here, there = two
    own, others = [], []
    here.on_wake(own.append)
    there.on_wake(others.append)
    topics = ["queue", "stop"] * 50  # so fast that several arrive in one packet
    for topic in topics:
        here.wake_others(topic)
    eventually(lambda: others == topics)
    there.wake_others("queue")
    eventually(lambda: own == ["queue"])
    assert others == topics


def test_exclusive_writes_exclude_each_other(two):
    inside, most = 0, 0
    lock = threading.Lock()

    def work(_):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.002)
        with lock:
            inside -= 1

    with ThreadPoolExecutor(6) as users:
        list(users.map(lambda n: two[n % 2].write(work, exclusive=True), range(30)))
    assert most == 1


def test_servers_of_one_machine_never_grant_the_same(two):
    jobs = submit(two[0], *(new_job() for _ in range(20)))
    grant = (GpuGrant("GPU-1", 0, 400),)

    def race(number):
        try:
            two[number % 2].write(lambda tx: place(tx, jobs[number], gpus=grant))
        except errors.StaleWrite:
            return False
        return True

    with ThreadPoolExecutor(10) as racers:
        assert sum(racers.map(race, range(20))) == 2


def test_both_make_the_same_shape_at_once(two):
    ready = threading.Barrier(2)

    def make(store):
        def work(tx):
            [job] = tx.insert_jobs([new_job(timeout_s=5.0)])
            return job

        ready.wait(20)
        return store.write(work).shape_id

    with ThreadPoolExecutor(2) as users:
        assert len(set(users.map(make, two))) == 1


def test_a_shape_the_other_has_pruned_is_made_again(two):
    here, there = two
    job = submit_one(here)
    here.write(lambda tx: tx.delete_job(job.id))
    assert there.write(lambda tx: tx.prune_shapes()) == 1
    again = submit_one(here)
    with there.read() as reader:
        assert [shape.id for shape in reader.waiting_shapes()] == [again.shape_id]


def test_a_deadlock_is_tried_again(two):
    first, second = submit(two[0], new_job(), new_job())
    pending = frozenset({JobStatus.PENDING})
    ready = threading.Barrier(2)
    runs = Counter()

    def change(store, one, other):
        def work(tx):
            runs[store] += 1
            tx.update_job(one.id, pending, progress=1.0)
            if runs[store] == 1:
                ready.wait(20)
            tx.update_job(other.id, pending, progress=2.0)

        store.write(work)

    with ThreadPoolExecutor(2) as users:
        done = [
            users.submit(change, two[0], first, second),
            users.submit(change, two[1], second, first),
        ]
        for one in done:
            one.result(60)
    assert sum(runs.values()) == 3


def test_the_clock_is_the_database_s(two, postgres_url):
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        [told] = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
    assert abs(two[0].now() - float(told)) < 5


def test_a_backup_is_left_to_pg_dump(two, tmp_path):
    with pytest.raises(errors.BadRequest, match="pg_dump"):
        two[0].backup(str(tmp_path / "x"))


def test_a_nul_in_a_text_is_refused(two):
    with pytest.raises(errors.BadRequest):
        submit_one(two[0], name="a\0b")


def test_timestamps_are_real_ones(two, postgres_url):
    import psycopg

    submit_one(two[0], submitted_at=1_790_000_000.5)
    with psycopg.connect(postgres_url) as connection:
        [kind, text] = connection.execute(
            "SELECT pg_typeof(submitted_at)::text,"
            " (submitted_at AT TIME ZONE 'UTC')::text FROM training_jobs"
        ).fetchone()
    assert (kind, text) == ("timestamp with time zone", "2026-09-21 14:13:20.5")


def test_the_database_may_go_away_for_a_while(own_postgres_server):
    server = own_postgres_server
    store = open_store(server.url + "/postgres")
    heard = []
    store.subscribe(heard.extend)
    try:
        first = submit_one(store)
        eventually(lambda: len(heard) == 1)
        server.stop(signal.SIGQUIT)
        with pytest.raises(errors.Unavailable):
            submit_one(store)
        with pytest.raises(errors.Unavailable), store.read() as reader:
            reader.keys()
        store.wake_others("queue")  # only a hint, never an error
        assert store.now() > 0
        server.start(server.port)
        assert read_job(store, first.ref) == first
        second = submit_one(store)
        eventually(lambda: [told.job_ref for told in heard] == [first.ref, second.ref], 40)
    finally:
        store.close()


def test_a_connection_that_was_cut_is_replaced(two, postgres_url):
    import psycopg

    here, _ = two
    heard = []
    here.subscribe(heard.extend)
    before = submit_one(here)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    job = submit_one(here)
    assert read_job(here, job.id) == job
    eventually(lambda: [told.job_id for told in heard] == [before.id, job.id], 40)


PLACER = """
import sys
from runyard.domain.errors import StaleWrite
from runyard.domain.resources import GpuGrant
from runyard.stores.opening import open_store
from runyard.testing.store_samples import place

store = open_store(sys.argv[1])

def work(tx):
    placed = []
    for shape in tx.waiting_shapes():
        for head in tx.ready_jobs(shape.id, 3):
            job = tx.job(head.job_id)
            place(tx, job, node_id=sys.argv[2], ports=(38000 + job.id,))
            placed.append(job.ref)
    return placed

print("ready", flush=True)
sys.stdin.readline()
while placed := store.write(work, exclusive=True):
    print(*placed, sep="\\n", flush=True)
store.close()
"""


def test_two_processes_never_place_a_job_twice(postgres_url):
    """Two servers on one PostgreSQL never start a job twice."""
    store = open_store(postgres_url)
    jobs = submit(store, *(new_job() for _ in range(300)))
    servers = [
        subprocess.Popen(
            [sys.executable, "-c", PLACER, postgres_url, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    for server in servers:
        server.stdin.write("go\n")
        server.stdin.flush()
    told = [server.communicate(timeout=90)[0].split() for server in servers]
    assert [server.returncode for server in servers] == [0, 0]
    assert sorted(told[0] + told[1]) == sorted(job.ref for job in jobs)
    with store.read() as reader:
        nodes = Counter(attempt.node_id for attempt in reader.live_attempts())
        assert nodes == {"one": len(told[0]), "two": len(told[1])}
        assert reader.count_by_status()[JobStatus.SCHEDULED] == 300
    store.close()
