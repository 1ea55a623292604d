"""Content on its way in piece by piece, and content that is about to go."""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_01_uploads"
down_revision = "2026_12_01_tenants"

ID = sa.String(32)
SHA256 = sa.String(64)
MOMENT = sa.DateTime(timezone=True)
OPEN = "state IN ('receiving', 'storing')"


def upgrade() -> None:
    """The tables and their indexes."""
    op.add_column("blobs", sa.Column("kept_at", MOMENT, nullable=True))
    op.create_table(
        "doomed_blobs",
        sa.Column("sha256", SHA256, nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_doomed_blobs"),
    )
    op.create_table(
        "uploads",
        sa.Column("id", ID, nullable=False),
        sa.Column("protocol", sa.String(10), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", SHA256, nullable=True),
        sa.Column("part_bytes", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_by", sa.String(200), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.Column("project_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_uploads"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_uploads_project_id_projects"),
        sa.CheckConstraint("protocol IN ('tus', 'parts')", name="ck_uploads_protocol"),
        sa.CheckConstraint("state IN ('receiving', 'storing', 'stored', 'failed')", name="ck_uploads_state"),
    )
    op.create_index("ix_uploads_project_id_id", "uploads", ["project_id", "id"])
    where = sa.text(OPEN)
    op.create_index("ix_uploads_open", "uploads", ["expires_at"], sqlite_where=where, postgresql_where=where)
