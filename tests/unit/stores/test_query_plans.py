"""The queue is read through its indexes: cost does not grow with jobs that wait or have ended."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import func, select

from runyard.domain.job import ArrayPlace, Priority
from runyard.stores import sql_alerts, sql_attempts, sql_events, sql_jobs, sql_leases, sql_queue
from runyard.stores.base import JobFilter
from runyard.stores.opening import open_store
from runyard.stores.prepared import PreparedStatements, Statement
from runyard.stores.sql_job_list import _exact_conditions
from runyard.stores.sqlite_connection import sqlite_dialect
from runyard.stores.tables import training_jobs
from runyard.testing.store_samples import new_job, submit

SEEKS = {
    sql_queue._HEADS: "ix_training_jobs_ready_by_shape",
    sql_queue._READY_OF_SHAPE: "ix_training_jobs_ready_by_shape",
    sql_queue._COUNT_AHEAD: "ix_training_jobs_ready_by_priority",
    sql_queue._FIRST_AHEAD: "ix_training_jobs_ready_by_priority",
    sql_queue._FIRST_OF_PRIORITY: "ix_training_jobs_ready_by_priority",
    sql_queue._WHOLE_NOT_READY: "ix_training_jobs_not_ready",
    sql_queue._NEXT_DELAYED: "ix_training_jobs_delayed",
    sql_queue._WAKE: "ix_training_jobs_delayed",
    sql_attempts._ALL_LIVE: "ix_attempts_live",
    sql_attempts._LIVE_OF_NODE: "ix_attempts_live",
    sql_attempts._ACTIVE: "ix_attempts_live",
    sql_events.OF_JOB_AFTER: "ix_events_job_id",
    sql_jobs._BY_REF: "sqlite_autoindex_training_jobs_1",
    sql_leases._EXPIRED: "ix_leases_expires_at",
    sql_leases._NEXT: "ix_leases_expires_at",
    sql_alerts._BY_KEY: "uq_alerts_key_not_closed",
    sql_alerts._OPEN_OF_JOB: "ix_alerts_job_id",
    sql_jobs._DEPENDENTS: "ix_job_dependencies_depends_on_id",
}


@pytest.fixture
def plan(store, query):  # noqa: ARG001 - the store makes the file
    statements = PreparedStatements(sqlite_dialect())

    def explain(statement):
        sql = statements.get(statement).sql
        return [row[3] for row in query("EXPLAIN QUERY PLAN " + sql, *[1] * sql.count("?"))]

    return explain


@pytest.mark.parametrize("statement", SEEKS, ids=SEEKS.values())
def test_it_is_found_by_its_index(plan, statement):
    steps = plan(statement)
    assert any(SEEKS[statement] in step for step in steps), steps
    # The queue is never read through from end to end, and never sorted.
    table = "training_jobs" if "training_jobs" in SEEKS[statement] else "nothing"
    reads = [step for step in steps if step.startswith(f"SCAN {table}") and "INDEX" not in step]
    assert not reads


def test_shapes_that_nothing_waits_for_are_not_looked_at(store):
    """One seek per shape with ready jobs: counted in steps of SQLite's machine, not in time."""
    submit(store, *(new_job(priority=priority) for priority in Priority))
    few = _steps(store)
    submit(store, *(new_job(ready=False, array=ArrayPlace(f"a{n}", 0)) for n in range(500)))
    submit(store, *(new_job() for _ in range(2000)))
    assert _steps(store) <= few * 1.2


def test_what_ended_lately_is_found_among_all_that_ever_ended(store, query):  # noqa: ARG001
    chosen = _exact_conditions(JobFilter(ended_since=1.0))
    ended = training_jobs.c.completed_at.desc().nulls_last()
    newest = select(training_jobs).where(*chosen).order_by(ended, training_jobs.c.id.desc())
    count = select(func.count().label("many")).where(*chosen)
    for statement in (newest.limit(200), count):
        sql = PreparedStatements(sqlite_dialect()).get(Statement(statement)).sql
        steps = [row[3] for row in query("EXPLAIN QUERY PLAN " + sql, *[1] * sql.count("?"))]
        assert ["ix_training_jobs_completed_at" in step for step in steps] == [True], steps


def _steps(store):
    with store.read() as reader:
        steps = 0

        def count():
            nonlocal steps
            steps += 1
            return 0

        reader._driver.connection.set_progress_handler(count, 1)
        assert len(reader.waiting_shapes()) == 3
        reader._driver.connection.set_progress_handler(None, 1)
        return steps


@pytest.mark.parametrize(
    "statement",
    [
        sql_queue._HEADS,
        sql_queue._READY_OF_SHAPE,
        sql_queue._FIRST_AHEAD,
        sql_queue._FIRST_OF_PRIORITY,
        sql_queue._WHOLE_NOT_READY,
        sql_queue._NEXT_DELAYED,
    ],
)
def test_postgres_follows_the_indexes_also_by_plans_made_when_empty(postgres_url, statement):
    """A connection keeps its plans: one made on an empty table must be good on a full one."""
    from runyard.stores.postgres_connection import connect, postgres_dialect

    open_store(postgres_url).close()
    sql = PreparedStatements(postgres_dialect()).get(statement).sql
    names = sorted(set(re.findall(r"%\((\w+)\)s", sql)))
    for number, name in enumerate(names, 1):
        sql = sql.replace(f"%({name})s", f"${number}")
    nulls = f"({', '.join(['NULL'] * len(names))})" if names else ""
    with connect(postgres_url) as connection:
        connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.execute(f"PREPARE it AS {sql.replace('%%', '%')}")
        plan = [row[0] for row in connection.execute(f"EXPLAIN EXECUTE it{nulls}")]
    text = "\n".join(plan)
    assert SEEKS[statement] in text, text
    assert "Seq Scan on training_jobs" not in text, text
    assert "Sort" not in text, text
    assert "ix_training_jobs_status" not in text, text
