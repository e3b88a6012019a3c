"""Alembic's entry: runs the migrations on the connection that `migrate` gives it."""

from alembic import context

from runyard.stores.all_tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
