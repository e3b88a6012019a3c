"""Alembic's entry: runs the migrations on the connection that `migrate` gives it."""

from alembic import context

from runyard.stores.watch_tables import metadata  # with it every table is known

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
