"""Projects with bounds, tokens with names and scopes, trusted issuers, and a log of what was done that only grows."""

import secrets
import time

import sqlalchemy as sa
from alembic import op

revision = "2026_12_01_tenants"
down_revision = "2026_11_30_scheme_checks"

ID = sa.String(32)
MOMENT = sa.DateTime(timezone=True)
NAME = sa.String(100)
WHO = sa.String(200)
SCOPES = sa.String(40)
EVERYTHING = "admin"  # what every token could do so far
EARLIER = "earlier release"


def upgrade() -> None:
    """The tables; a token that is there may do everything, as it could."""
    op.add_column("projects", sa.Column("quota_bytes", sa.BigInteger(), nullable=True))
    op.add_column("projects", sa.Column("max_running_jobs", sa.Integer(), nullable=True))
    op.add_column("projects", sa.Column("deleted_at", MOMENT, nullable=True))
    _tokens()
    op.create_table(
        "trusts",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("issuer", sa.String(500), nullable=False),
        sa.Column("audience", sa.String(500), nullable=False),
        sa.Column("claims", sa.Text(), nullable=False),
        sa.Column("scopes", SCOPES, nullable=False),
        sa.Column("created_by", WHO, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_trusts"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_trusts_project_id_projects"),
    )
    op.create_index("ix_trusts_project_id_id", "trusts", ["project_id", "id"])
    op.create_index("ix_trusts_issuer", "trusts", ["issuer"])
    op.create_table(
        "audit",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=True),
        sa.Column("actor", WHO, nullable=False),
        sa.Column("action", sa.String(60), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("request_id", sa.String(64), nullable=True),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_project_id_id", "audit", ["project_id", "id"])
    _only_added()


def _tokens() -> None:
    for column in (
        sa.Column("id", ID, nullable=True),
        sa.Column("name", NAME, nullable=True),
        sa.Column("scopes", SCOPES, nullable=True),
        sa.Column("parent_id", ID, nullable=True),
        sa.Column("created_by", WHO, nullable=True),
        sa.Column("last_used_at", MOMENT, nullable=True),
    ):
        op.add_column("tokens", column)
    tokens = sa.table(
        "tokens", *(sa.column(name) for name in ("sha256", "id", "name", "scopes", "created_by"))
    )
    for (sha256,) in op.get_bind().execute(sa.select(tokens.c.sha256)).all():
        id_ = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"
        known = {"id": id_, "name": "first", "scopes": EVERYTHING, "created_by": "serve"}
        op.execute(tokens.update().where(tokens.c.sha256 == sha256).values(known))
    # An API of the release before goes on for a while, and makes sessions without these.
    sqlite = op.get_bind().dialect.name == "sqlite"
    chance = "(lower(hex(randomblob(16))))" if sqlite else "md5(random()::text || clock_timestamp()::text)"
    unsaid = (
        ("id", ID, sa.text(chance)),
        ("name", NAME, EARLIER),
        ("scopes", SCOPES, EVERYTHING),
        ("created_by", WHO, EARLIER),
    )
    with op.batch_alter_table("tokens") as table:
        for name, kind, default in unsaid:
            table.alter_column(name, existing_type=kind, nullable=False, server_default=default)
        table.create_unique_constraint("uq_tokens_id", ["id"])
    op.create_index("ix_tokens_project_id_id", "tokens", ["project_id", "id"])
    op.create_index("ix_tokens_expires_at", "tokens", ["expires_at"])


def _only_added() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for what in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_refuses_{what.lower()} BEFORE {what} ON audit "
                "BEGIN SELECT RAISE(ABORT, 'rows of audit are only ever added'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION audit_refuses() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'rows of audit are only ever added'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_refuses BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses()"
    )
