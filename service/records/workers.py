"""Queries over live workers: their heartbeats by the database's clock, which is the same for all of them."""

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from service.records.database import clock
from service.records.models import Worker
from service.records.rows import insert


def beat(session: Session, executor_id: str, *, host: str, machine: str, pid: int, started: int) -> None:
    """Say that a worker lives."""
    facts = {"host": host, "machine": machine, "pid": pid, "started": started, "beat_at": clock(session)}
    statement = insert(session, Worker).values(executor_id=executor_id, **facts)
    session.connection().execute(statement.on_conflict_do_update(index_elements=["executor_id"], set_=facts))


def stale(session: Session, older_than_seconds: float) -> list[Worker]:
    """The workers whose last beat is older than that, the longest silent first."""
    oldest = clock(session) - older_than_seconds
    query = select(Worker).where(Worker.beat_at < oldest).order_by(Worker.beat_at, Worker.executor_id)
    return list(session.scalars(query.execution_options(populate_existing=True)))


def all(session: Session) -> list[Worker]:  # noqa: A001  reads as workers.all
    """Every worker that is remembered."""
    query = select(Worker).order_by(Worker.executor_id)
    return list(session.scalars(query.execution_options(populate_existing=True)))


def remove(session: Session, executor_id: str) -> None:
    """Forget a worker: it ended, or its work was handed on."""
    session.execute(delete(Worker).where(Worker.executor_id == executor_id))
