"""Rollups keep what stands out; sums of their points were kept as well, and read by nobody."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("metric_rollups", "total")
    op.drop_column("metric_rollups", "finite")
