"""Comparisons of two artifacts, and the provenance record of a conversion."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "2026_11_30_comparisons"
down_revision = "2026_11_30_provenance"

ID = sa.String(32)
DIGEST = sa.String(71)
WORD = sa.String(20)
MOMENT = sa.DateTime(timezone=True)
INTEGER = sa.Integer()
REAL = sa.Float(53)
TEXT = sa.Text()  # names, and JSON documents

OWNER = {"comparison_id": "comparisons"}


def upgrade() -> None:
    """The tables, and one column."""
    op.add_column("conversions", sa.Column("record", DIGEST, nullable=True))
    _table(
        "comparisons",
        ("id",),
        {
            "id": ID,
            "job_id": ID,
            "a_artifact_id": ID,
            "b_artifact_id": ID,
            "verdict": [WORD],
            "document": [TEXT],
            "summary": [TEXT],
            "created_at": MOMENT,
            "finished_at": [MOMENT],
        },
        {"job_id": "jobs", "a_artifact_id": "artifacts", "b_artifact_id": "artifacts"},
        unique="job_id",
    )
    for column in ("a_artifact_id", "b_artifact_id"):
        _index("comparisons", column, "id")
    _table(
        "comparison_objects",
        ("comparison_id", "ordinal"),
        {
            "comparison_id": ID,
            "ordinal": INTEGER,
            "status": WORD,
            "rank": INTEGER,
            "weight": REAL,
            "document": TEXT,
        },
        OWNER,
    )
    worst: list[Any] = ["comparison_id", "rank", sa.text("weight DESC"), "ordinal"]
    op.create_index("ix_comparison_objects_worst", "comparison_objects", worst)
    _index("comparison_objects", "comparison_id", "status", "ordinal")
    _table(
        "comparison_findings",
        ("comparison_id", "seq"),
        {
            "comparison_id": ID,
            "seq": INTEGER,
            "code": sa.String(100),
            "severity": WORD,
            "check": WORD,
            "object": [TEXT],
            "document": TEXT,
        },
        OWNER,
    )


def _table(
    name: str,
    primary: tuple[str, ...],
    columns: Mapping[str, Any],
    refers: Mapping[str, str],
    *,
    unique: str | None = None,
) -> None:
    """A table of a tenant's data with its constraints named; a type in a list may be null."""
    constraints: list[sa.Constraint] = [sa.PrimaryKeyConstraint(*primary, name=f"pk_{name}")]
    for column, other in {**refers, "project_id": "projects"}.items():
        constraint = f"fk_{name}_{column}_{other}"
        constraints.append(sa.ForeignKeyConstraint([column], [f"{other}.id"], name=constraint))
    if unique is not None:
        constraints.append(sa.UniqueConstraint(unique, name=f"uq_{name}_{unique}"))
    made = [
        sa.Column(column, kind[0] if isinstance(kind, list) else kind, nullable=isinstance(kind, list))
        for column, kind in {**columns, "project_id": ID}.items()
    ]
    op.create_table(name, *made, *constraints)


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))
