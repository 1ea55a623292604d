"""From the environment to a running worker, or to a sentence that says why there is none."""

import sys

import structlog
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ninfer_core.errors import NinferError
from service import logs, metrics, tracing
from service.records.database import Database, head, revision
from service.records.errors import DatabaseUnreachable
from service.settings import Settings
from worker.life import Life, hear_signals

log = structlog.get_logger()

EXIT_ERROR = 2


def start(beat_fd: int | None) -> int:
    """The exit code."""
    try:
        settings = Settings()
    except ValidationError as error:
        return _cannot(str(error))
    logs.configure(settings.log_json)
    try:
        _require_tables(settings)
        tracing.start(settings, "worker")
        life = Life(settings, beat_fd)
        logs.configure(settings.log_json, executor=life.executor_id)
        hear_signals(life.stop)
        stop_metrics = metrics.serve(settings, lambda: life.well)
        try:
            return life.run()
        finally:
            stop_metrics()
            tracing.stop()
    except (NinferError, SQLAlchemyError, OSError) as error:
        log.debug("worker.failed", exc_info=True)
        return _cannot(str(error))


def _require_tables(settings: Settings) -> None:
    """Raises: DatabaseUnreachable, or NinferError unless the tables are those of this version."""
    database = Database(settings.records_url)
    try:
        found = revision(database)
    except DBAPIError as error:
        raise DatabaseUnreachable(database.address, str(error.orig).strip()) from error
    finally:
        database.close()
    if found != head():
        have = f"at revision {found}" if found is not None else "without tables"
        raise NinferError(
            f"the database {database.address} is {have}, this version needs {head()}; run `ninfer-gate migrate`"
        )


def _cannot(why: str) -> int:
    print(f"worker: cannot start: {why}", file=sys.stderr)
    return EXIT_ERROR
