"""Jobs by when they ended: what ended lately is found without reading all that ever did."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    ended = sa.text("completed_at IS NOT NULL")
    op.create_index(
        "ix_training_jobs_completed_at",
        "training_jobs",
        ["completed_at"],
        sqlite_where=ended,
        postgresql_where=ended,
    )
