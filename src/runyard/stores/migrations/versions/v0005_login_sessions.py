"""People who are logged in with a browser."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.TIMESTAMP(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "login_sessions",
        sa.Column("id", IDENTITY, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("key_id", IDENTITY, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"], ["api_keys.id"], name="fk_login_sessions_key_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_login_sessions"),
        sa.UniqueConstraint("digest", name="uq_login_sessions_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_login_sessions_key_id", "login_sessions", ["key_id"])
    op.create_index("ix_login_sessions_expires_at", "login_sessions", ["expires_at"])
