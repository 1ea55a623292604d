"""Checks of foreign schemes and struct types: one document for each job of kind `scheme`."""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_30_scheme_checks"
down_revision = "2026_11_30_self_checks"

ID = sa.String(32)
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """The table and its indexes."""
    op.create_table(
        "scheme_checks",
        sa.Column("id", ID, nullable=False),
        sa.Column("job_id", ID, nullable=False),
        sa.Column("subject", sa.String(10), nullable=False),
        sa.Column("form", sa.String(100), nullable=True),
        sa.Column("verdict", sa.String(20), nullable=True),
        sa.Column("errors", sa.BigInteger(), nullable=True),
        sa.Column("advisories", sa.BigInteger(), nullable=True),
        sa.Column("document", sa.Text(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.Column("project_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_scheme_checks"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_scheme_checks_job_id_jobs"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_scheme_checks_project_id_projects"),
        sa.UniqueConstraint("job_id", name="uq_scheme_checks_job_id"),
        sa.CheckConstraint("subject IN ('parts', 'struct')", name="ck_scheme_checks_subject"),
        sa.CheckConstraint("verdict IN ('passed', 'failed', 'incomplete')", name="ck_scheme_checks_verdict"),
    )
    for columns in (["project_id", "id"], ["project_id", "form", "id"]):
        op.create_index(f"ix_scheme_checks_{'_'.join(columns)}", "scheme_checks", columns)
