"""Queries over live workers: their heartbeats by the database's clock, which is the same for all of them."""

from typing import cast

from sqlalchemy import CursorResult, delete, select, update
from sqlalchemy.orm import Session

from service.records.database import clock
from service.records.models import Worker
from service.records.rows import insert


def enter(
    session: Session,
    executor_id: str,
    *,
    host: str,
    machine: str,
    pid: int,
    started: int,
    version: str | None = None,
) -> None:
    """Say that a worker lives from now on; `version` is that of its ninfer-gate."""
    facts = {
        "host": host,
        "machine": machine,
        "pid": pid,
        "started": started,
        "beat_at": clock(session),
        "version": version,
        "draining": False,
    }
    statement = insert(session, Worker).values(executor_id=executor_id, **facts)
    session.connection().execute(statement.on_conflict_do_update(index_elements=["executor_id"], set_=facts))


def beat(session: Session, executor_id: str) -> bool:
    """Say that a worker still lives; False when its row is gone: it was taken for dead."""
    # One statement that writes no new row: between a look and an insert, a peer could remove it unnoticed.
    statement = update(Worker).where(Worker.executor_id == executor_id).values(beat_at=clock(session))
    done = session.execute(statement.execution_options(synchronize_session=False))
    return cast("CursorResult[None]", done).rowcount == 1


def drain(session: Session, executor_id: str) -> None:
    """Say that a worker begins nothing any more, and ends soon."""
    statement = update(Worker).where(Worker.executor_id == executor_id).values(draining=True)
    session.execute(statement.execution_options(synchronize_session=False))


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
