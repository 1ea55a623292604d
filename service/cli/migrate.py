"""`ninfer-gate migrate`: make the databases of the service, or bring them up to date."""

from typing import Any

from service.cli.failures import Task, guarded
from service.cli.settings import changed_settings


def migrate(changes: dict[str, Any]) -> int:
    """0 when every table is up to date, 2 when they could not be; `changes` are settings that options give."""
    task = Task("migrate", "migrating the databases", "The tables are as they were.")
    return guarded(task, lambda: _migrate(changes))


def _migrate(changes: dict[str, Any]) -> int:
    from service import queue
    from service.records import database
    from service.records.connections import shown

    settings = changed_settings(changes)
    done = database.migrate(settings.records_url)
    print(f"{shown(settings.records_url)}: {_told(done.before, done.after)}")
    queue.prepare(settings.engine_url)
    print(f"{shown(settings.engine_url)}: the tables of the durable engine are up to date.")
    return 0


def _told(before: str | None, after: str) -> str:
    if before is None:
        return f"made the tables, at revision {after}."
    if before == after:
        return f"the tables are up to date, at revision {after}."
    return f"brought the tables from revision {before} to {after}."
