"""Jobs in lanes, with priority, deadline and attempts; campaigns; imports; what a worker says of itself."""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_01_lanes"
down_revision = "2026_12_01_uploads"

ID = sa.String(32)
MOMENT = sa.DateTime(timezone=True)
VERSION = sa.String(40)
WHO = sa.String(200)
NONE = sa.text("0")


def upgrade() -> None:
    """The tables and columns. Jobs that are there are interactive, as they were."""
    _campaigns()
    _imports()
    with op.batch_alter_table("jobs") as table:
        table.add_column(sa.Column("planned_by", VERSION, nullable=True))
        table.add_column(sa.Column("lane", sa.String(12), nullable=False, server_default="interactive"))
        table.add_column(sa.Column("priority", sa.Integer(), nullable=False, server_default=NONE))
        table.add_column(sa.Column("deadline_at", MOMENT, nullable=True))
        table.add_column(sa.Column("admitted_at", MOMENT, nullable=True))
        table.add_column(sa.Column("epoch", sa.Integer(), nullable=False, server_default=NONE))
        table.add_column(sa.Column("attempts", sa.Integer(), nullable=False, server_default=NONE))
        table.add_column(sa.Column("last_error", sa.Text(), nullable=True))
        table.add_column(sa.Column("campaign_id", ID, nullable=True))
        table.add_column(sa.Column("created_by", WHO, nullable=True))
        table.create_check_constraint("ck_jobs_lane", "lane IN ('interactive', 'bulk')")
        table.create_foreign_key("fk_jobs_campaign_id_campaigns", "campaigns", ["campaign_id"], ["id"])
    op.create_index("ix_jobs_campaign_id_id", "jobs", ["campaign_id", "id"])
    op.create_index("ix_jobs_campaign_id_state_id", "jobs", ["campaign_id", "state", "id"])
    # Those that are open are in the engine's line already.
    jobs = sa.table("jobs", sa.column("state"), sa.column("created_at"), sa.column("admitted_at"))
    opened = jobs.c.state.in_(("queued", "running"))
    op.execute(jobs.update().where(opened).values(admitted_at=jobs.c.created_at))
    waiting = sa.text("state = 'queued' AND admitted_at IS NULL")
    admitted = sa.text("state IN ('queued', 'running') AND admitted_at IS NOT NULL")
    is_open = sa.text("state IN ('queued', 'running')")
    op.create_index(
        "ix_jobs_project_open",
        "jobs",
        ["project_id", "id"],
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.create_index(
        "ix_jobs_waiting",
        "jobs",
        ["project_id", "lane", "priority", "id"],
        sqlite_where=waiting,
        postgresql_where=waiting,
    )
    op.create_index(
        "ix_jobs_admitted",
        "jobs",
        ["project_id", "lane", "state"],
        sqlite_where=admitted,
        postgresql_where=admitted,
    )
    op.add_column("shards", sa.Column("attempts", sa.Integer(), nullable=False, server_default=NONE))
    op.add_column("shards", sa.Column("last_error", sa.Text(), nullable=True))
    op.add_column("shards", sa.Column("finished_at", MOMENT, nullable=True))
    op.add_column("workers", sa.Column("version", VERSION, nullable=True))
    op.add_column("workers", sa.Column("draining", sa.Boolean(), nullable=False, server_default=sa.false()))


def _campaigns() -> None:
    op.create_table(
        "campaigns",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("cursor", ID, nullable=True),
        sa.Column("total", sa.BigInteger(), nullable=False, server_default=NONE),
        sa.Column("selected", sa.BigInteger(), nullable=False, server_default=NONE),
        sa.Column("refused", sa.BigInteger(), nullable=False, server_default=NONE),
        sa.Column("last_refusal", sa.Text(), nullable=True),
        sa.Column("created_by", WHO, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.Column("project_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_campaigns"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_campaigns_project_id_projects"),
        sa.CheckConstraint("state IN ('running', 'done', 'cancelled')", name="ck_campaigns_state"),
    )
    op.create_index("ix_campaigns_project_id_id", "campaigns", ["project_id", "id"])
    where = sa.text("state = 'running'")
    op.create_index("ix_campaigns_open", "campaigns", ["id"], sqlite_where=where, postgresql_where=where)
    op.create_index(
        "uq_campaigns_running",
        "campaigns",
        ["project_id", "name"],
        unique=True,
        sqlite_where=where,
        postgresql_where=where,
    )


def _imports() -> None:
    op.create_table(
        "imports",
        sa.Column("id", ID, nullable=False),
        sa.Column("job_id", ID, nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("verdict", sa.String(20), nullable=True),
        sa.Column("document", sa.Text(), nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.Column("project_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_imports"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_imports_job_id_jobs"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_imports_project_id_projects"),
        sa.UniqueConstraint("job_id", name="uq_imports_job_id"),
        sa.CheckConstraint("verdict IN ('stored')", name="ck_imports_verdict"),
    )
    op.create_index("ix_imports_project_id_id", "imports", ["project_id", "id"])
