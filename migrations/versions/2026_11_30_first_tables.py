"""The first tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "2026_11_30_first_tables"
down_revision = None

Columns = Mapping[str, Any]

ID = sa.String(32)
DIGEST = sa.String(71)
SHA256 = sa.String(64)
WORD = sa.String(20)
MOMENT = sa.DateTime(timezone=True)
INTEGER = sa.Integer()
BIG = sa.BigInteger()
REAL = sa.Float(53)
FLAG = sa.Boolean()
TEXT = sa.Text()  # names, and JSON documents

OPEN = "state IN ('queued', 'running')"
STATES = "state IN ('queued', 'running', 'passed', 'failed', 'incomplete', 'error', 'cancelled')"


def upgrade() -> None:
    """The first tables."""
    _projects_and_registries()
    _content()
    _sources()
    _jobs()
    _runs()
    _conversions()


def _projects_and_registries() -> None:
    _table("projects", "id", {"id": ID, "name": sa.String(100), "created_at": MOMENT}, unique=["name"])
    _table(
        "encoder_profiles",
        "name version",
        {
            "name": sa.String(100),
            "version": INTEGER,
            "specification": TEXT,
            "specification_digest": DIGEST,
            "vectors_digest": DIGEST,
            "first_seen_at": MOMENT,
        },
    )
    _table(
        "workers",
        "executor_id",
        {
            "executor_id": sa.String(64),
            "host": TEXT,
            "machine": TEXT,
            "pid": BIG,
            "started": BIG,
            "beat_at": REAL,
        },
    )
    _tenants_table(
        "tokens",
        "sha256",
        {"sha256": SHA256, "kind": sa.String(10), "created_at": MOMENT, "expires_at": [MOMENT]},
    )


def _content() -> None:
    _tenants_table("blobs", "project_id sha256", {"sha256": SHA256, "bytes": BIG, "created_at": MOMENT})
    _tenants_table(
        "artifacts",
        "id",
        {
            "id": ID,
            "digest": DIGEST,
            "kind": WORD,
            "entry": TEXT,
            "bytes": BIG,
            "origin": sa.String(10),
            "listing": sa.String(10),
            "revision": [BIG],
            "model_id": [TEXT],
            "weights_id": [TEXT],
            "object_count": [BIG],
            "created_at": MOMENT,
        },
        unique=["project_id", "digest"],
    )
    _index("artifacts", "project_id", "id")
    _index("artifacts", "id", name="ix_artifacts_unlisted", where="listing = 'pending'")
    _tenants_table(
        "artifact_files",
        "artifact_id ordinal",
        {
            "artifact_id": ID,
            "ordinal": INTEGER,
            "name": TEXT,
            "sha256": SHA256,
            "bytes": BIG,
        },
        refers={"artifact_id": "artifacts"},
    )
    _tenants_table(
        "objects",
        "artifact_id ordinal",
        {
            "artifact_id": ID,
            "ordinal": INTEGER,
            "name": TEXT,
            "name_key": ID,
            "kind": [TEXT],
            "format": [TEXT],
            "layout": [TEXT],
            "entry": TEXT,
        },
        refers={"artifact_id": "artifacts"},
    )
    _index("objects", "artifact_id", "name_key")


def _sources() -> None:
    _tenants_table(
        "checkpoints",
        "id",
        {
            "id": ID,
            "digest": DIGEST,
            "bytes": BIG,
            "repository": [TEXT],
            "revision": [TEXT],
            "created_at": MOMENT,
        },
    )
    _index("checkpoints", "digest")
    _tenants_table(
        "checkpoint_files",
        "checkpoint_id ordinal",
        {
            "checkpoint_id": ID,
            "ordinal": INTEGER,
            "name": TEXT,
            "sha256": SHA256,
            "bytes": BIG,
        },
        refers={"checkpoint_id": "checkpoints"},
    )
    _tenants_table(
        "recipes",
        "project_id digest",
        {
            "digest": DIGEST,
            "target_digest": [DIGEST],
            "recipe_id": TEXT,
            "model_id": TEXT,
            "weights_id": TEXT,
            "document": TEXT,
            "created_at": MOMENT,
        },
    )
    _index("recipes", "project_id", "created_at", "digest")


def _jobs() -> None:
    _tenants_table(
        "jobs",
        "id",
        {
            "id": ID,
            "type": WORD,
            "state": WORD,
            "request": TEXT,
            "request_digest": DIGEST,
            "idempotency_key": [sa.String(255)],
            "artifact_id": [ID],
            "cancel_requested": FLAG,
            "error": [TEXT],
            "objects": [BIG],
            "bytes": [BIG],
            "plan": [DIGEST],
            "created_at": MOMENT,
            "started_at": [MOMENT],
            "finished_at": [MOMENT],
        },
        refers={"artifact_id": "artifacts"},
        unique=["project_id", "idempotency_key"],
        check={"state": STATES},
    )
    _index("jobs", "project_id", "id")
    _index("jobs", "id", name="ix_jobs_open", where=OPEN)
    _tenants_table(
        "shards",
        "job_id number",
        {
            "job_id": ID,
            "number": INTEGER,
            "first": BIG,
            "stop": BIG,
            "bytes": BIG,
            "bytes_done": BIG,
            "objects": BIG,
            "done": FLAG,
            "outcomes": [TEXT],
            "segment": [TEXT],
        },
        refers={"job_id": "jobs"},
    )
    _tenants_table(
        "job_events",
        "job_id seq",
        {
            "job_id": ID,
            "seq": INTEGER,
            "key": sa.String(60),
            "type": WORD,
            "data": TEXT,
            "at": MOMENT,
        },
        refers={"job_id": "jobs"},
        unique=["job_id", "key"],
    )


def _runs() -> None:
    _tenants_table(
        "runs",
        "id",
        {
            "id": ID,
            "job_id": ID,
            "artifact_id": ID,
            "checks": TEXT,
            "recipe_digest": [DIGEST],
            "checkpoints": [TEXT],
            "verdict": [WORD],
            "report": [TEXT],
            "errors": [BIG],
            "advisories": [BIG],
            "created_at": MOMENT,
            "finished_at": [MOMENT],
        },
        refers={"job_id": "jobs", "artifact_id": "artifacts"},
        unique=["job_id"],
    )
    _index("runs", "artifact_id", "id")
    _index("runs", "project_id", "id")
    _tenants_table(
        "results",
        "run_id ordinal",
        {
            "run_id": ID,
            "ordinal": INTEGER,
            "outcome": WORD,
            "evidence": [WORD],
            "sha256": [SHA256],
            "identity": [DIGEST],
            "metrics": TEXT,
            "nmse": [REAL],
        },
        refers={"run_id": "runs"},
    )
    _index("results", "run_id", "ordinal", name="ix_results_not_passed", where="outcome <> 'passed'")
    _index("results", "run_id", "nmse DESC", "ordinal", name="ix_results_worst")
    _findings("findings", "run_id", "runs")


def _conversions() -> None:
    _tenants_table(
        "conversions",
        "id",
        {
            "id": ID,
            "job_id": ID,
            "recipe_digest": DIGEST,
            "checkpoints": TEXT,
            "inputs": TEXT,
            "output": TEXT,
            "verdict": [WORD],
            "artifact_id": [ID],
            "document": [TEXT],
            "created_at": MOMENT,
            "finished_at": [MOMENT],
        },
        refers={"job_id": "jobs", "artifact_id": "artifacts"},
        unique=["job_id"],
    )
    _index("conversions", "artifact_id")
    _tenants_table(
        "conversion_objects",
        "conversion_id ordinal",
        {
            "conversion_id": ID,
            "ordinal": INTEGER,
            "document": TEXT,
        },
        refers={"conversion_id": "conversions"},
    )
    _findings("conversion_findings", "conversion_id", "conversions")


def _findings(name: str, owner: str, owners: str) -> None:
    columns: Columns = {
        owner: ID,
        "seq": INTEGER,
        "code": sa.String(100),
        "severity": WORD,
        "check": WORD,
        "object": [TEXT],
        "document": TEXT,
    }
    _tenants_table(name, f"{owner} seq", columns, refers={owner: owners})


def _tenants_table(
    name: str,
    primary: str,
    columns: Columns,
    *,
    refers: Mapping[str, str] | None = None,
    unique: Sequence[str] = (),
    check: Mapping[str, str] | None = None,
) -> None:
    columns = {**columns, "project_id": ID}
    _table(
        name,
        primary,
        columns,
        refers={**(refers or {}), "project_id": "projects"},
        unique=unique,
        check=check,
    )


def _table(
    name: str,
    primary: str,
    columns: Columns,
    *,
    refers: Mapping[str, str] | None = None,
    unique: Sequence[str] = (),
    check: Mapping[str, str] | None = None,
) -> None:
    """A table with its constraints named; a type in a list may be null."""
    constraints: list[sa.Constraint] = [sa.PrimaryKeyConstraint(*primary.split(), name=f"pk_{name}")]
    for column, other in (refers or {}).items():
        constraint = f"fk_{name}_{column}_{other}"
        constraints.append(sa.ForeignKeyConstraint([column], [f"{other}.id"], name=constraint))
    if unique:
        constraints.append(sa.UniqueConstraint(*unique, name=f"uq_{name}_{'_'.join(unique)}"))
    for word, condition in (check or {}).items():
        constraints.append(sa.CheckConstraint(condition, name=f"ck_{name}_{word}"))
    made = [
        sa.Column(column, kind[0] if isinstance(kind, list) else kind, nullable=isinstance(kind, list))
        for column, kind in columns.items()
    ]
    op.create_table(name, *made, *constraints)


def _index(table: str, *columns: str, name: str | None = None, where: str | None = None) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(
        name or f"ix_{table}_{'_'.join(columns)}",
        table,
        [sa.text(column) if " " in column else column for column in columns],
        sqlite_where=condition,
        postgresql_where=condition,
    )
