"""How Alembic runs the migrations: on a connection that is handed over, inside its transaction."""

from typing import Any

from alembic import context

from service.records.models import Base

LOCK_SECONDS = 10  # a migration waits no longer for a table: whoever uses the table would wait behind it
NOT_REFLECTED = (
    "ix_results_worst",
    "ix_comparison_objects_worst",
)  # SQLite does not tell in which order an index runs

connection = context.config.attributes["connection"]
sqlite = connection.dialect.name == "sqlite"


def compared(_item: Any, name: str | None, _kind: str, _reflected: bool, _other: Any) -> bool:
    """Whether tables and models can be compared in this."""
    return not (sqlite and name in NOT_REFLECTED)


if not sqlite:
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=sqlite,
    include_object=compared,
)
with context.begin_transaction():
    context.run_migrations()
