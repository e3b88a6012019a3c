"""Distributed attempts, and nodes that executors offer."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.add_column("shapes", sa.Column("gang", JSON, nullable=True))
    op.add_column("attempts", sa.Column("slices", JSON, nullable=True))
    op.add_column("nodes", sa.Column("offer", JSON, nullable=True))
