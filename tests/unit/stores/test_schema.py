"""The schema: migrations and tables agree, old ones are lifted, newer ones are left alone."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from runyard.domain import errors
from runyard.stores import schema
from runyard.stores.all_tables import metadata
from runyard.stores.migrate import alembic_config, migrate
from runyard.stores.opening import open_store
from runyard.stores.tables import training_jobs

ASKED_FOR = """
id uuid customer_id workspace_id name description job_type cpu_cores memory_gb gpu_count gpu_type
image command working_dir env_vars dataset_ids output_path status progress retry_count max_retries
priority queued_at submitted_at scheduled_at started_at completed_at
"""


def _made_and_migrated(tmp_path, name):
    """The URLs of two SQLite files: one made fresh by the store, one made by the migrations."""
    made, migrated = (f"sqlite:///{tmp_path}/{name}-{how}.db" for how in ("made", "migrated"))
    open_store(made).close()
    migrate(migrated)
    return made, migrated


def _sqlite_schema(url):
    """Every table and index, with the parts of each table in no order."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        found = connection.execute("SELECT name, sql FROM sqlite_master").fetchall()
    parts = {}
    for name, sql in found:
        words = re.sub(r"\s+", " ", sql or "").replace("( ", "(").replace(" )", ")")
        table = words.startswith("CREATE TABLE")
        parts[name] = sorted(words[:-1].split(", CONSTRAINT ")) if table else words
    return parts


def _differences(url):
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            return compare_metadata(context, metadata)
    finally:
        engine.dispose()


def _postgres_schema(url):
    import psycopg

    with psycopg.connect(url) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable, column_default"
            " FROM information_schema.columns WHERE table_schema = 'public'"
        ).fetchall()
        indexes = connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
        ).fetchall()
        constraints = connection.execute(
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE connamespace = 'public'::regnamespace"
        ).fetchall()
    return sorted(columns), sorted(indexes), sorted(constraints)


def test_the_columns_of_training_jobs_have_the_agreed_names():
    """R32"""
    assert set(ASKED_FOR.split()) <= set(training_jobs.c.keys())


def test_the_known_revisions_are_those_of_the_migrations():
    scripts = ScriptDirectory.from_config(alembic_config())
    assert tuple(s.revision for s in reversed(list(scripts.walk_revisions()))) == (
        schema.KNOWN_REVISIONS
    )


def test_migrations_give_the_schema_of_the_tables_in_sqlite(tmp_path):
    made, migrated = _made_and_migrated(tmp_path, "drift")
    assert _sqlite_schema(made) == _sqlite_schema(migrated)
    assert _differences(migrated) == []


def test_migrations_give_the_schema_of_the_tables_in_postgres(postgres_url):
    import psycopg

    migrate(postgres_url)
    assert _differences(postgres_url) == []
    migrated = _postgres_schema(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    open_store(postgres_url).close()
    assert _postgres_schema(postgres_url) == migrated


def test_a_default_customer_and_workspace_exist(tmp_path):
    """R32"""
    for url in _made_and_migrated(tmp_path, "default"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            assert connection.execute("SELECT id, name FROM customers").fetchall() == [
                (1, "default")
            ]
            assert connection.execute("SELECT id, customer_id FROM workspaces").fetchall() == [
                (1, 1)
            ]


def test_migrating_twice_changes_nothing(path):
    migrate(f"sqlite:///{path}")
    migrate(f"sqlite:///{path}")
    open_store(f"sqlite:///{path}", create=False).close()


def test_rollups_of_an_older_database_stay(path):
    """Columns that went take nothing else with them."""
    url = f"sqlite:///{path}"
    migrate(url, "0007")
    columns = "job_id, key_id, attempt, level, bucket, points, first_step, last_step, first_at"
    columns += ", last_at, low, low_step, low_at, high, high_step, high_at, total, finite"
    with closing(sqlite3.connect(path)) as connection, connection:
        marks = ", ".join(str(number) for number in range(1, 19))
        connection.execute(f"INSERT INTO metric_rollups ({columns}) VALUES ({marks})")
    migrate(url)
    with closing(sqlite3.connect(path)) as connection:
        kept = connection.execute("SELECT * FROM metric_rollups").fetchall()
    assert kept == [(*range(1, 17), None, None)]


def test_an_older_database_is_lifted_in_a_process_of_its_own(path, query, monkeypatch):
    """Alembic is not loaded by the one that opens it."""
    open_store(f"sqlite:///{path}").close()
    lifted = []
    monkeypatch.setattr(schema, "KNOWN_REVISIONS", ("0000", schema.HEAD))
    monkeypatch.setattr(schema, "migrate_in_child", lifted.append)
    query("UPDATE alembic_version SET version_num = '0000'")
    open_store(f"sqlite:///{path}").close()
    assert lifted == [f"sqlite:///{path}"]


def test_the_child_migrates_and_says_what_went_wrong(path, tmp_path):
    schema.migrate_in_child(f"sqlite:///{path}")
    open_store(f"sqlite:///{path}", create=False).close()
    with pytest.raises(errors.StartRefused):
        schema.migrate_in_child(f"sqlite:///{tmp_path}/no/such/folder.db")


def test_opening_a_store_loads_no_alembic(path):
    program = (
        "import sys; from runyard.stores.opening import open_store;"
        "open_store(sys.argv[1]).close();"
        "sys.exit('alembic' in sys.modules or 'sqlalchemy.orm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, f"sqlite:///{path}"], check=False)
    assert done.returncode == 0


def test_a_newer_database_is_refused_and_left_alone(path, query):
    """A clear error, and nothing is changed."""
    open_store(f"sqlite:///{path}").close()
    query("UPDATE alembic_version SET version_num = '9999'")
    before = Path(path).read_bytes()
    with pytest.raises(errors.SchemaTooNew) as refused:
        open_store(f"sqlite:///{path}")
    assert refused.value.params == {"found": "9999", "known": schema.HEAD}
    assert Path(path).read_bytes() == before


def test_a_newer_postgres_database_is_refused(postgres_url):
    import psycopg

    open_store(postgres_url).close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(errors.SchemaTooNew):
        open_store(postgres_url)


def test_a_database_of_another_program_is_refused(path, query):
    query("CREATE TABLE theirs (id INTEGER)")
    with pytest.raises(errors.DataDirUnusable):
        open_store(f"sqlite:///{path}")
    assert query("SELECT name FROM sqlite_master") == [("theirs",)]


def test_a_postgres_database_of_another_program_is_refused(postgres_url):
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num text)")
    with pytest.raises(errors.BadSettings):
        open_store(postgres_url)


def test_several_servers_may_start_first(postgres_url):
    with ThreadPoolExecutor(4) as servers:
        stores = list(servers.map(lambda _: open_store(postgres_url), range(4)))
    for store in stores:
        store.close()


def test_several_processes_may_make_one_file(path):
    program = "import sys; from runyard.stores.opening import open_store; open_store(sys.argv[1])"
    command = [sys.executable, "-c", program, f"sqlite:///{path}"]
    made = [subprocess.Popen(command) for _ in range(3)]
    assert [one.wait(60) for one in made] == [0, 0, 0]
