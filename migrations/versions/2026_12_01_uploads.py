"""Content on its way in piece by piece, and content that is about to go."""

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "2026_12_01_uploads"
down_revision = "2026_12_01_tenants"

ID = sa.String(32)
SHA256 = sa.String(64)
MOMENT = sa.DateTime(timezone=True)
OPEN = "state IN ('receiving', 'storing')"
# Members of a job's request that name no content by its sha256.
NO_CONTENT = ("artifact", "recipe", "target", "a", "b")
BATCH = 1_000


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
        sa.Column("said", sa.Text(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", SHA256, nullable=True),
        sa.Column("part_bytes", sa.BigInteger(), nullable=True),
        sa.Column("place", ID, nullable=True),
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
    op.create_index(
        "ix_uploads_open", "uploads", ["project_id", "id"], sqlite_where=where, postgresql_where=where
    )
    op.create_index("ix_blobs_sha256", "blobs", ["sha256"])
    op.create_index("ix_checkpoints_project_id_id", "checkpoints", ["project_id", "id"])
    op.create_index("ix_artifact_files_project_id_sha256", "artifact_files", ["project_id", "sha256"])
    op.create_index("ix_checkpoint_files_project_id_sha256", "checkpoint_files", ["project_id", "sha256"])
    op.create_index("ix_conversions_project_id_record", "conversions", ["project_id", "record"])
    op.create_table(
        "leases",
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("until", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
    op.create_table(
        "job_contents",
        sa.Column("project_id", ID, nullable=False),
        sa.Column("sha256", SHA256, nullable=False),
        sa.Column("job_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "sha256", "job_id", name="pk_job_contents"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_job_contents_job_id_jobs"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_job_contents_project_id_projects"),
    )
    _note_contents()


def _note_contents() -> None:
    """What the requests of the jobs that are there name."""
    jobs = sa.table("jobs", sa.column("id"), sa.column("project_id"), sa.column("request"))
    named = sa.table("job_contents", sa.column("project_id"), sa.column("sha256"), sa.column("job_id"))
    last = ""
    while True:
        query = sa.select(jobs.c.id, jobs.c.project_id, jobs.c.request).where(jobs.c.id > last)
        rows = op.get_bind().execute(query.order_by(jobs.c.id).limit(BATCH)).all()
        if not rows:
            return
        last = rows[-1].id
        found = [
            {"project_id": row.project_id, "sha256": sha256, "job_id": row.id}
            for row in rows
            for sha256 in sorted(set(_digests(json.loads(row.request))))
        ]
        if found:
            op.get_bind().execute(named.insert(), found)


def _digests(request: Any) -> Iterator[str]:
    rest = [value for name, value in request.items() if name not in NO_CONTENT]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, list):
            rest += value
        elif isinstance(value, str) and value.startswith("sha256:") and len(value) == 71:
            yield value.removeprefix("sha256:")
