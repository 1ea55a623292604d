"""What is kept for some time only, and what a deleted project leaves: taken away in short transactions, safe to be repeated.

Evidence is no part of the former: runs, conversions, comparisons, checks and what they are about stay until their project is
deleted. Content goes in two steps. First its row, while nothing refers to it, and with it a promise that the bytes will go;
then, a good while later, the bytes, while the promise is held fast and no project holds the content. Whoever brings the same
content breaks the promise, or waits and finds that the bytes are gone.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy.exc import IntegrityError

from ninfer_core.errors import NinferError
from service.blobs import Blobs, StoreAway
from service.errors import Fault, InvalidRequest, ProjectProtected, RouteNotFound
from service.records import audit, content, erasure, jobs, retention
from service.records.database import Database
from service.records.models import DEFAULT_PROJECT, Project
from service.records.types import now

log = structlog.get_logger()

# Between the row and the bytes: longer than anybody takes from finding content in its place to the row that says so.
GRACE: Final = timedelta(minutes=15)
_ROWS: Final = 500  # of one short transaction
_PATIENCE: Final = timedelta(minutes=10)  # that a job of a deleted project has to notice that it is cancelled
_UPLOAD_PATIENCE: Final = timedelta(hours=1)

Check = Callable[[], None]  # called between transactions; what it raises ends the work


def collect(database: Database, before: datetime, check: Check) -> int:
    """Drop the rows of content that nothing refers to and that came in before a moment; how many."""
    count, after = 0, retention.FIRST
    while True:
        check()
        with database.read() as session:
            walked = retention.unreferenced(session, before, after, _ROWS)
        if walked.found:
            with database.write() as session:
                count += len(retention.drop_unreferenced(session, walked.found, before))
        if walked.last is None:
            return count
        after = walked.last


def purge(database: Database, blobs: Blobs, before: datetime, check: Check) -> int:
    """Remove the bytes of content that was doomed before a moment and that no project holds; how many."""
    count, after = 0, ""
    while True:
        with database.read() as session:
            shas = retention.doomed(session, before, after, _ROWS)
        for sha256 in shas:
            check()
            try:
                count += _purge(database, blobs, before, sha256)
            except StoreAway as error:
                # Each try waits for it in a transaction that holds others up; they go when it is back.
                log.warning("blob.not_removed", sha256=sha256, error=str(error))
                return count
            except NinferError as error:
                log.warning("blob.not_removed", sha256=sha256, error=str(error))
        if len(shas) < _ROWS:
            return count
        after = shas[-1]


def _purge(database: Database, blobs: Blobs, before: datetime, sha256: str) -> bool:
    with database.write() as session:
        if not retention.is_doomed(session, sha256, before):
            return False
        held = retention.is_held(session, sha256)
        if not held:
            blobs.remove(sha256)
        content.spare(session, sha256)
    return not held


def forget_events(database: Database, before: datetime, check: Check) -> int:
    """Forget what jobs that ended before a moment said on their way; how many events."""
    count, after = 0, ""
    while True:
        check()
        with database.read() as session:
            told, last = retention.ended_jobs(session, before, after, _ROWS)
        if told:
            with database.write() as session:
                count += retention.drop_events(session, told)
        if last is None:
            return count
        after = last


def delete_project(
    database: Database, project_id: str, *, confirm: str, actor: str, request_id: str | None = None
) -> None:
    """Delete a project: from now on nothing opens it, what runs is cancelled, and workers take away all that it holds.

    `confirm` is its name once more; one that is deleted stays so. The log keeps what was done.
    Raises: RouteNotFound, ProjectProtected, InvalidRequest.
    """
    with database.write() as session:
        found = erasure.project(session, project_id)
        if found is None:
            raise RouteNotFound("There is no such project.")
        if project_id == DEFAULT_PROJECT:
            raise ProjectProtected(
                "The first project stays: workers keep the self-checks of their devices in it."
            )
        if confirm != found.name:
            fault = Fault("query", "confirm", "it is not the name of the project")
            raise InvalidRequest("To delete a project, say its name once more.", fault)
        if found.deleted_at is None:
            erasure.close(session, found)
            audit.add(session, project_id, actor, "project.deleted", found.name, request_id=request_id)
    stop(database, project_id)


def stop(database: Database, project_id: str, check: Check = lambda: None) -> None:
    """Cancel what a deleted project still does."""
    with database.write() as session:
        erasure.stop(session, project_id)
    after = ""
    while True:
        check()
        with database.write() as session:
            some = erasure.open_jobs(session, project_id, after, _ROWS)
            for job in some:
                if not job.cancel_requested:
                    jobs.request_cancel(session, project_id, job.id)
        if len(some) < _ROWS:
            return
        after = some[-1].id


def erase_deleted(database: Database, check: Check) -> list[str]:
    """Take away what deleted projects hold, as far as nothing works on it any more; the ids of those that are gone."""
    with database.read() as session:
        waiting = erasure.deleted(session)
    return [project.id for project in waiting if _erase(database, project, check)]


def _erase(database: Database, project: Project, check: Check) -> bool:
    stop(database, project.id, check)
    if project.deleted_at is not None and project.deleted_at < now() - _PATIENCE:
        _end_jobs(database, project.id, check)
    with database.read() as session:
        if erasure.is_busy(session, project.id, now() - _UPLOAD_PATIENCE):
            return False
    for table in erasure.tables():
        while True:
            check()
            with database.write() as session:
                gone = erasure.erase(session, table, project.id, _ROWS)
            if gone == 0:
                break
    while True:
        check()
        with database.write() as session:
            if retention.drop_held(session, project.id, _ROWS) == 0:
                break
    return _forget(database, project)


def _end_jobs(database: Database, project_id: str, check: Check) -> None:
    """Jobs that were told to stop a good while ago: no worker may be left that would hear it."""
    with database.read() as session:
        left = erasure.open_jobs(session, project_id, "", _ROWS)
    for job in left:
        check()
        with database.write() as session:
            jobs.finish(session, job.id, "cancelled")


def _forget(database: Database, project: Project) -> bool:
    try:
        with database.write() as session:
            if not erasure.remove(session, project.id):
                return False
            audit.add(session, project.id, "worker", "project.erased", project.name)
    except IntegrityError:  # a request that was let in before has added something since
        return False
    log.info("project.erased", project=project.id)
    return True
