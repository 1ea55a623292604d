"""Leases: of all processes one does something, for as long as it says so again and again."""

from typing import cast

from sqlalchemy import CursorResult, delete, or_, update
from sqlalchemy.orm import Session

from service.records.database import clock
from service.records.models import Lease
from service.records.rows import insert_new


def take(session: Session, name: str, holder: str, seconds: float) -> bool:
    """Whether the lease is this holder's for so many seconds from now: it was free, over, or its own."""
    moment = clock(session)
    if insert_new(session, Lease, [{"name": name, "holder": holder, "until": moment + seconds}]) == 1:
        return True
    free = or_(Lease.holder == holder, Lease.until < moment)
    statement = update(Lease).where(Lease.name == name, free).values(holder=holder, until=moment + seconds)
    done = session.execute(statement.execution_options(synchronize_session=False))
    return cast("CursorResult[None]", done).rowcount == 1


def release(session: Session, name: str, holder: str) -> None:
    """Give a lease back, if it is still this holder's."""
    session.execute(delete(Lease).where(Lease.name == name, Lease.holder == holder))
