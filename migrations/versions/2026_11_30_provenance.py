"""Targets, and where every artifact comes from: claims, edges, identities of objects, and what may be reused."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "2026_11_30_provenance"
down_revision = "2026_11_30_first_tables"

ID = sa.String(32)
DIGEST = sa.String(71)
SHA256 = sa.String(64)
WORD = sa.String(20)
MOMENT = sa.DateTime(timezone=True)
INTEGER = sa.Integer()
BIG = sa.BigInteger()
FLAG = sa.Boolean()
TEXT = sa.Text()  # names, and JSON documents

KINDS = "kind IN ('encoder_profile', 'recipe', 'target', 'checkpoint', 'format', 'tool_version')"
BASES = "basis IN ('claimed', 'converted', 'verified')"

# Columns without a constraint: SQLite adds them in place, where changing a table would copy millions of rows.
ADDED: Mapping[str, Mapping[str, Any]] = {
    "artifacts": {"claims": TEXT},
    "checkpoints": {"license": TEXT},
    "encoder_profiles": {"semantic_digest": DIGEST, "implementation_digest": DIGEST},
    "conversions": {"target_digest": DIGEST, "command": TEXT, "environment": TEXT, "host": TEXT},
    "runs": {
        "target": TEXT,
        "target_digest": DIGEST,
        "canonical": FLAG,
        "sample": TEXT,
        "full": FLAG,
        "max_age_seconds": BIG,
        "reuse": TEXT,
        "source_key": DIGEST,
    },
    "results": {"coverage": WORD, "reuse_key": DIGEST, "reused_run_id": ID},
}


def upgrade() -> None:
    """The tables and columns."""
    for table, columns in ADDED.items():
        for name, kind in columns.items():
            flag = kind is FLAG
            default = sa.false() if flag else None
            op.add_column(table, sa.Column(name, kind, nullable=not flag, server_default=default))
    _index("runs", "project_id", "source_key", "id")
    reusable = sa.text("reuse_key IS NOT NULL")
    op.create_index(
        "ix_results_reusable",
        "results",
        ["project_id", "reuse_key"],
        sqlite_where=reusable,
        postgresql_where=reusable,
    )
    _targets()
    _identities()
    _edges()


def _targets() -> None:
    _table(
        "targets",
        ("project_id", "digest"),
        {
            "digest": DIGEST,
            "model_id": TEXT,
            "weights_id": TEXT,
            "key": [TEXT],
            "inventory_sha256": SHA256,
            "object_count": BIG,
            "document": TEXT,
            "created_at": MOMENT,
        },
    )
    _index("targets", "project_id", "created_at", "digest")


def _identities() -> None:
    columns = {"artifact_id": ID, "ordinal": INTEGER, "identity": DIGEST}
    _table("object_identities", ("artifact_id", "ordinal"), columns, of_artifact=True)
    _index("object_identities", "project_id", "identity", "artifact_id", "ordinal")


def _edges() -> None:
    _table(
        "edges",
        ("artifact_id", "kind", "basis", "key"),
        {
            "artifact_id": ID,
            "kind": WORD,
            "basis": sa.String(10),
            "key": ID,
            "value": TEXT,
            "value_key": ID,
            "role": TEXT,
            "origin_id": ID,
            "created_at": MOMENT,
        },
        of_artifact=True,
        check={"kind": KINDS, "basis": BASES},
    )
    _index("edges", "project_id", "kind", "value_key", "artifact_id")
    op.create_index("ix_edges_basis", "edges", ["project_id", "kind", "value_key", "basis", "artifact_id"])


def _table(
    name: str,
    primary: Sequence[str],
    columns: Mapping[str, Any],
    *,
    of_artifact: bool = False,
    check: Mapping[str, str] | None = None,
) -> None:
    """A table of a tenant's data with its constraints named; a type in a list may be null."""
    refers = {"project_id": "projects", **({"artifact_id": "artifacts"} if of_artifact else {})}
    constraints: list[sa.Constraint] = [sa.PrimaryKeyConstraint(*primary, name=f"pk_{name}")]
    for column, other in refers.items():
        constraint = f"fk_{name}_{column}_{other}"
        constraints.append(sa.ForeignKeyConstraint([column], [f"{other}.id"], name=constraint))
    for word, condition in (check or {}).items():
        constraints.append(sa.CheckConstraint(condition, name=f"ck_{name}_{word}"))
    made = [
        sa.Column(column, kind[0] if isinstance(kind, list) else kind, nullable=isinstance(kind, list))
        for column, kind in {**columns, "project_id": ID}.items()
    ]
    op.create_table(name, *made, *constraints)


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))
