"""Self-checks of devices, kernel by kernel under a key of all that could change it, and which kernels made a result."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "2026_11_30_self_checks"
down_revision = "2026_11_30_comparisons"

ID = sa.String(32)
DIGEST = sa.String(71)
SHORT = sa.String(10)
WORD = sa.String(20)
NAME = sa.String(40)
LONG_NAME = sa.String(100)
MOMENT = sa.DateTime(timezone=True)
INTEGER = sa.Integer()
BIG = sa.BigInteger()
REAL = sa.Float(53)
FLAG = sa.Boolean()
TEXT = sa.Text()  # names, and JSON documents

LEVELS = "level IN ('quick', 'full')"
OUTCOMES = "outcome IN ('passed', 'failed', 'incomplete')"
RESULTS = "outcome IN ('passed', 'failed', 'error', 'not_checked')"


def upgrade() -> None:
    """The tables, and one column of each that tells what made it."""
    for table in ("shards", "runs", "conversions"):
        op.add_column(table, sa.Column("produced", TEXT, nullable=True))
    _table(
        "self_checks",
        ("id",),
        {
            "id": ID,
            "job_id": [ID],
            "worker": sa.String(64),
            "machine": ID,
            "level": SHORT,
            "seed": BIG,
            "outcome": WORD,
            "device": WORD,
            "device_class": SHORT,
            "device_model": TEXT,
            "capability": TEXT,
            "driver": [TEXT],
            "runtime": [TEXT],
            "compiler": TEXT,
            "simulated": FLAG,
            "device_key": ID,
            "kernels_key": ID,
            "software": TEXT,
            "created_at": MOMENT,
        },
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_self_checks_job_id_jobs"),
        sa.UniqueConstraint("job_id", name="uq_self_checks_job_id"),
        sa.CheckConstraint(LEVELS, name="ck_self_checks_level"),
        sa.CheckConstraint(OUTCOMES, name="ck_self_checks_outcome"),
    )
    _index("self_checks", "project_id", "id")
    _index("self_checks", "project_id", "device_key", "kernels_key", "level", "id")
    _table(
        "self_check_results",
        ("self_check_id", "ordinal"),
        {
            "self_check_id": ID,
            "ordinal": INTEGER,
            "kernel": LONG_NAME,
            "operation": WORD,
            "format": NAME,
            "layout": NAME,
            "dtype": [SHORT],
            "regime": NAME,
            "compute_profile": LONG_NAME,
            "compute_profile_digest": DIGEST,
            "kernel_digest": DIGEST,
            "key": DIGEST,
            "outcome": WORD,
            "reason": [TEXT],
            "cases": BIG,
            "values": BIG,
            "mismatches": BIG,
            "first_mismatch": [TEXT],
            "runs": BIG,
            "equal_runs": BIG,
            "bytes_per_second": [REAL],
            "copy_ratio": [REAL],
        },
        sa.ForeignKeyConstraint(
            ["self_check_id"],
            ["self_checks.id"],
            name="fk_self_check_results_self_check_id_self_checks",
            ondelete="CASCADE",
        ),
        sa.CheckConstraint(RESULTS, name="ck_self_check_results_outcome"),
    )
    _index("self_check_results", "project_id", "key", "self_check_id")
    _index("self_check_results", "project_id", "format", "operation", "self_check_id")


def _table(
    name: str, primary: tuple[str, ...], columns: Mapping[str, Any], *constraints: sa.Constraint
) -> None:
    """A table of a tenant's data with its constraints named; a type in a list may be null."""
    project = sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=f"fk_{name}_project_id_projects")
    made = [
        sa.Column(column, kind[0] if isinstance(kind, list) else kind, nullable=isinstance(kind, list))
        for column, kind in {**columns, "project_id": ID}.items()
    ]
    op.create_table(name, *made, sa.PrimaryKeyConstraint(*primary, name=f"pk_{name}"), project, *constraints)


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))
